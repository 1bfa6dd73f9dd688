import { getHeapStatistics } from 'node:v8'
import type { Clock, Random as SecureRandom } from '@sluice/core'
import { systemRandom as secureRandom, systemClock } from '@sluice/core'
import { systemMonotonicMs } from '@sluice/core/internal'
import type { LogOutput, LoopDelay, Random, Sleep } from '@sluice/runtime'
import { Logger, systemLoopDelay, systemRandom, systemSleep, systemTurnEnd } from '@sluice/runtime'

/** Clock, timers, randomness and log of one thread. */
export interface ThreadSystem {
  readonly clock: Clock
  readonly sleep: Sleep
  readonly random: Random
  /** Cryptographically secure. */
  readonly secureRandom: SecureRandom
  /** Monotonic milliseconds, with fractions. */
  readonly monotonicMs: () => number
  /** Runs a callback at the end of this event loop iteration. */
  readonly atTurnEnd: (run: () => void) => void
  readonly openLoopDelay: () => LoopDelay & { readonly close: () => void }
  readonly readings: SystemReadings
  readonly log: Logger
  readonly logOutput: Pick<LogOutput, 'counts'>
  /** Writes a line to standard output. Lines are dropped while more than 1 MiB waits to be written. */
  readonly writeLine: (line: string) => void
}

/** The real system, for one thread of this process. */
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
    writeLine: (line) => {
      if (process.stdout.writableLength < MOST_WAITING_BYTES) process.stdout.write(`${line}\n`)
    },
  }
}

const MOST_WAITING_BYTES = 1024 * 1024

/** Resource usage of the process and of this thread. */
export interface SystemReadings {
  /** CPU time of all threads, in microseconds. */
  readonly cpuMicros: () => number
  /** Resident memory of the process, in bytes; undefined where the system does not say, as without /proc. */
  readonly residentBytes: () => number | undefined
  /** Used heap of this thread, in bytes. */
  readonly heapBytes: () => number
}

export const systemReadings: SystemReadings = {
  cpuMicros() {
    const { user, system } = process.cpuUsage()
    return user + system
  },
  residentBytes() {
    try {
      return process.memoryUsage.rss()
    } catch {
      return undefined
    }
  },
  // Not `process.memoryUsage()`, which reads the resident memory too.
  heapBytes: () => getHeapStatistics().used_heap_size,
}

/** `count` cryptographically random bytes. */
export function bytesFrom(random: SecureRandom, count: number): Uint8Array {
  const words = Uint32Array.from({ length: Math.ceil(count / 4) }, () => random.nextUint32())
  return new Uint8Array(words.buffer).slice(0, count)
}

/** Long enough for unique random names. */
const NAME_BYTES = 8

/** Creates unique names of 16 hexadecimal digits. */
export function randomNames(random: SecureRandom): () => string {
  return () => hexFrom(random, NAME_BYTES)
}

/** `count` cryptographically random bytes in hexadecimal digits. */
export function hexFrom(random: SecureRandom, count: number): string {
  return Buffer.from(bytesFrom(random, count)).toString('hex')
}
