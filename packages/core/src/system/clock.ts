/**
 * Where time comes from. Every decision takes it from here, so that tests and simulations own it.
 */
export interface Clock {
  /**
   * Microseconds since 1970-01-01T00:00:00Z, a whole number. Should not go back; when it does, stores act as if it stood
   * still until it has caught up, so a step back never hands out units twice.
   */
  nowMicros(): number
}

/** Microseconds in a millisecond. */
export const MICROS_PER_MS = 1000

/** Microseconds in a second. */
export const MICROS_PER_SECOND = 1_000_000
