import type { Logger, NowMs, Sleep } from '@sluice/runtime'
import { errorFields } from '../../observability/error-fields.ts'
import type { StreamAnswer } from '../handler.ts'

/** Bounds the streams of several feeds together. */
export class StreamLimit {
  readonly #most: number
  #open = 0

  constructor(most: number) {
    this.#most = most
  }

  /** Streams that are open. */
  get open(): number {
    return this.#open
  }

  get isReached(): boolean {
    return this.#open >= this.#most
  }

  enter(): void {
    this.#open++
  }

  leave(): void {
    this.#open--
  }
}

/** What an {@link EventFeed} works with. `Taken`: what is taken at each interval. */
export interface EventFeedParts<Taken> {
  /** Name of its events. */
  readonly event: string
  readonly everyMs: number
  /** What is there now. */
  readonly take: () => Promise<Taken>
  /** The data of an event, as JSON; undefined when there is nothing to tell. */
  readonly dataOf: (before: Taken, now: Taken) => object | undefined
  readonly limit: StreamLimit
  readonly nowMs: NowMs
  readonly sleep: Sleep
  readonly log: Logger
}

/** Who reads a stream. */
export interface FeedReader {
  /** The id of the last event that it has seen, as the client says: any string. */
  readonly lastEventId: string | undefined
  /** Whether it may go on to read; asked before each event. */
  readonly mayRead: () => boolean
}

/** Events are kept for readers that come back: those of the last minute. */
const KEPT_MS = 60_000

/** Tells clients to come back after two seconds when the connection is lost, and that it is there now. */
const OPENING = 'retry: 2000\n: connected\n\n'

/** Keeps connections from being taken for dead. */
const HEARTBEAT = ': heartbeat\n\n'

const HEADERS: Readonly<Record<string, string>> = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store',
  // Proxies that gather answers would hold events back.
  'X-Accel-Buffering': 'no',
}

interface Reader extends FeedReader {
  readonly write: (text: string) => boolean
  readonly end: () => void
  /** Whether it had not read up when it was last written to. */
  isBehind: boolean
}

interface KeptEvent {
  readonly id: number
  readonly text: string
}

/**
 * Sends an event at each interval to its readers, as server-sent events. All readers share the same events; without
 * readers none are made. A reader that does not keep up is disconnected: it reconnects by itself and gets what it
 * missed of the last minute.
 */
export class EventFeed<Taken> {
  readonly #parts: EventFeedParts<Taken>
  readonly #readers = new Set<Reader>()
  readonly #kept: KeptEvent[] = []
  #running: AbortController | undefined

  constructor(parts: EventFeedParts<Taken>) {
    this.#parts = parts
  }

  /** Whether it has no readers. */
  get isIdle(): boolean {
    return this.#readers.size === 0
  }

  /** The stream for a reader; undefined when there are too many. */
  open(reader: FeedReader): StreamAnswer | undefined {
    if (this.#parts.limit.isReached) return undefined
    return {
      status: 200,
      headers: HEADERS,
      stream: (write, end) => this.#begin({ ...reader, write, end, isBehind: false }),
    }
  }

  #begin(reader: Reader): () => void {
    const { limit } = this.#parts
    // Many may have been promised a stream before the first of them began.
    if (limit.isReached) {
      reader.end()
      return () => undefined
    }
    limit.enter()
    this.#readers.add(reader)
    // May be more than a connection takes at once; whether it was read is seen at the next event.
    reader.write(OPENING + this.#missedBy(reader))
    this.#start()
    return () => this.#leave(reader)
  }

  #leave(reader: Reader): void {
    if (!this.#readers.delete(reader)) return
    this.#parts.limit.leave()
    if (this.#readers.size > 0) return
    this.#running?.abort()
    this.#running = undefined
  }

  #start(): void {
    if (this.#running !== undefined || this.#readers.size === 0) return
    const running = new AbortController()
    this.#running = running
    void this.#run(running.signal)
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { everyMs, sleep } = this.#parts
    let before = await this.#take()
    while (!signal.aborted) {
      try {
        await sleep(everyMs, signal)
      } catch {
        return
      }
      const now = await this.#take()
      if (signal.aborted) return
      const data = before === undefined || now === undefined ? undefined : this.#parts.dataOf(before.taken, now.taken)
      if (data === undefined) this.#writeAll(HEARTBEAT)
      else this.#tell(data)
      before = now ?? before
    }
  }

  #tell(data: object): void {
    const id = Math.floor(this.#parts.nowMs())
    const text = `id: ${id}\nevent: ${this.#parts.event}\ndata: ${JSON.stringify(data)}\n\n`
    this.#kept.push({ id, text })
    if (this.#kept.length * this.#parts.everyMs > KEPT_MS) this.#kept.shift()
    this.#writeAll(text)
  }

  async #take(): Promise<{ readonly taken: Taken } | undefined> {
    try {
      return { taken: await this.#parts.take() }
    } catch (error) {
      this.#parts.log.warn('could not collect the metrics of the live feed', { error: errorFields(error) })
      return undefined
    }
  }

  #missedBy({ lastEventId }: Reader): string {
    const seen = lastEventId !== undefined && /^\d{1,16}$/.test(lastEventId) ? Number(lastEventId) : undefined
    if (seen === undefined) return ''
    return this.#kept
      .filter(({ id }) => id > seen)
      .map(({ text }) => text)
      .join('')
  }

  #writeAll(text: string): void {
    for (const reader of [...this.#readers]) {
      const mayGoOn = reader.mayRead() && this.#write(reader, text)
      if (!mayGoOn) reader.end()
    }
  }

  /** Writes; false when the reader had not read up twice in a row, so that ever more would have to be kept for it. */
  #write(reader: Reader, text: string): boolean {
    const hasReadUp = reader.write(text)
    const isTooSlow = !hasReadUp && reader.isBehind
    reader.isBehind = !hasReadUp
    return !isTooSlow
  }
}
