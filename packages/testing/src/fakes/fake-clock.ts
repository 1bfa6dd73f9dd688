import type { Clock } from '@sluice/core'
import { SluiceError } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'

/** Where a {@link FakeClock} starts: 2030-01-01T00:00:00Z, the first instant of a minute, hour, day, month and year. */
export const START_MICROS: number = Date.UTC(2030, 0, 1) * MICROS_PER_MS

/** A clock that moves only when a test moves it. */
export class FakeClock implements Clock {
  #now: number

  /** Starts at `startMicros`, whole microseconds since 1970. */
  constructor(startMicros: number = START_MICROS) {
    this.#now = checkMicros(startMicros)
  }

  nowMicros(): number {
    return this.#now
  }

  /** Moves on by milliseconds, of which three decimals count. 0 stays where it is; going back is {@link setMicros}. */
  advance(ms: number): void {
    this.advanceMicros(Math.round(ms * MICROS_PER_MS))
  }

  /** Moves on by whole microseconds, 0 or more. */
  advanceMicros(micros: number): void {
    this.#now += checkMicros(micros)
  }

  /** Jumps to an instant, in whole microseconds since 1970: forward or back, like a clock that is set. */
  setMicros(micros: number): void {
    this.#now = checkMicros(micros)
  }
}

function checkMicros(micros: number): number {
  if (Number.isSafeInteger(micros) && micros >= 0) return micros
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: 'a fake clock cannot go there',
    received: micros,
    expected: 'whole microseconds, 0 or more',
  })
}
