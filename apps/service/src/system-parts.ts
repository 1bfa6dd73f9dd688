import { systemRandom as secureRandom, systemClock } from '@sluice/core'
import { systemMonotonicMs } from '@sluice/core/internal'
import type { LogOutput } from '@sluice/runtime'
import { Logger, systemLoopDelay, systemRandom, systemSleep } from '@sluice/runtime'
import type { ThreadSystem } from './node.ts'
import { systemReadings } from './system-readings.ts'
import { atTurnEnd } from './turn-end.ts'

/** The real clock, timers, chance and log of this process, for one of its threads. */
export function systemParts(logOutput: LogOutput): ThreadSystem {
  return {
    clock: systemClock,
    sleep: systemSleep,
    random: systemRandom,
    secureRandom,
    monotonicMs: systemMonotonicMs,
    atTurnEnd,
    openLoopDelay: systemLoopDelay,
    readings: systemReadings,
    log: new Logger(logOutput),
    logOutput,
  }
}
