import { announcedWaitMs, exhaustedForMs } from './announced-wait.ts'

/** A time in which nothing is to be sent. */
export interface Pause {
  readonly untilMs: number
  readonly lengthMs: number
}

/** No announcement is believed for longer: whoever sends it may have mistaken the unit. */
const LONGEST_PAUSE_MS = 86_400_000

/** From so many on, those that are over are looked for. */
const MANY_PAUSES = 1000

/** What the answers to the calls of each key have said: until when there is no sense in another. */
export class AnnouncedPauses {
  readonly #pauses = new Map<string, Pause>()

  /** Keeps what an answer announces, unless a longer pause is known. */
  learn(key: string, response: Response, nowMs: number): void {
    const { status, headers } = response
    const isTurnedAway = status === 429 || status === 503
    const waitMs = isTurnedAway ? announcedWaitMs(response, nowMs) : exhaustedForMs(headers, nowMs, false)
    if (waitMs === undefined || waitMs <= 0) return
    const lengthMs = Math.min(waitMs, LONGEST_PAUSE_MS)
    const untilMs = nowMs + lengthMs
    if (untilMs <= (this.#pauses.get(key)?.untilMs ?? 0)) return
    if (this.#pauses.size >= MANY_PAUSES) this.#sweep(nowMs)
    this.#pauses.set(key, { untilMs, lengthMs })
  }

  /** The pause of a key that is not over. */
  of(key: string, nowMs: number): Pause | undefined {
    const pause = this.#pauses.get(key)
    if (pause === undefined || pause.untilMs > nowMs) return pause
    this.#pauses.delete(key)
    return undefined
  }

  /** Says that a pause was waited for, whatever the clock says: it may have been set back. */
  end(key: string, pause: Pause): void {
    if (this.#pauses.get(key) === pause) this.#pauses.delete(key)
  }

  #sweep(nowMs: number): void {
    for (const [key, { untilMs }] of this.#pauses) if (untilMs <= nowMs) this.#pauses.delete(key)
  }
}
