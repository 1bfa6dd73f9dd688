import type { Clock, Random as SecureRandom } from '@sluice/core'
import { systemRandom as secureRandom, systemClock } from '@sluice/core'
import { systemMonotonicMs } from '@sluice/core/internal'
import type { LogOutput, LoopDelay, Random, Sleep } from '@sluice/runtime'
import { Logger, systemLoopDelay, systemRandom, systemSleep, systemTurnEnd } from '@sluice/runtime'

/** What a thread takes from the system. */
export interface ThreadSystem {
  readonly clock: Clock
  readonly sleep: Sleep
  readonly random: Random
  /** Nobody can guess what it gives. */
  readonly secureRandom: SecureRandom
  /** Milliseconds since some instant, with fractions, never going back. */
  readonly monotonicMs: () => number
  /** Runs something at the end of this turn of the event loop. */
  readonly atTurnEnd: (run: () => void) => void
  readonly openLoopDelay: () => LoopDelay & { readonly close: () => void }
  readonly readings: SystemReadings
  readonly log: Logger
  /** Where the log goes to. */
  readonly logOutput: Pick<LogOutput, 'counts'>
}

/** The real clock, timers, chance and log of this process, for one of its threads. */
export function systemOfProcess(logOutput: LogOutput): ThreadSystem {
  return {
    clock: systemClock,
    sleep: systemSleep,
    random: systemRandom,
    secureRandom,
    monotonicMs: systemMonotonicMs,
    atTurnEnd: systemTurnEnd,
    openLoopDelay: systemLoopDelay,
    readings: systemReadings,
    log: new Logger(logOutput),
    logOutput,
  }
}

/** What the process and a thread of it say about themselves. */
export interface SystemReadings {
  /** Microseconds of processor time that all threads have used. */
  readonly cpuMicros: () => number
  /** Memory that the process has, in bytes. */
  readonly residentBytes: () => number
  /** Bytes of the heap of this thread that are in use. */
  readonly heapBytes: () => number
}

/** What this process and thread say. */
export const systemReadings: SystemReadings = {
  cpuMicros() {
    const { user, system } = process.cpuUsage()
    return user + system
  },
  residentBytes: () => process.memoryUsage.rss(),
  heapBytes: () => process.memoryUsage().heapUsed,
}

/** So many bytes that nobody can guess. */
export function bytesFrom(random: SecureRandom, count: number): Uint8Array {
  const words = Uint32Array.from({ length: Math.ceil(count / 4) }, () => random.nextUint32())
  return new Uint8Array(words.buffer).slice(0, count)
}

/** So many bytes that nobody can guess, in hexadecimal digits. */
export function hexFrom(random: SecureRandom, count: number): string {
  return Buffer.from(bytesFrom(random, count)).toString('hex')
}
