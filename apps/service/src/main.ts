import { constants } from 'node:os'
import { isSluiceError, systemClock } from '@sluice/core'
import {
  isRuntimeError,
  LogOutput,
  Logger,
  systemLoopDelay,
  systemNowMs,
  systemRandom,
  systemSleep,
} from '@sluice/runtime'
import type { Service } from './compose.ts'
import { composeService } from './compose.ts'
import { isServiceError } from './service-error.ts'
import { readSettings } from './settings.ts'
import { startupMessage } from './startup-message.ts'

async function main(): Promise<void> {
  const settings = readSettings()
  const output = new LogOutput({ stream: process.stderr, nowMs: systemNowMs, level: settings.logLevel })
  let firstKey: string | undefined
  let isTold = false
  const service = composeService({
    settings,
    clock: systemClock,
    sleep: systemSleep,
    random: systemRandom,
    log: new Logger(output),
    loopDelay: systemLoopDelay(),
    showKey: (token) => {
      firstKey = token
      if (isTold) console.log(`The first API key, which may do everything and is shown only now:\n  ${token}`)
    },
  })
  stopOnSignals(service)
  await service.start()
  isTold = true
  console.log(startupMessage({ settings, port: service.port ?? settings.port, version: service.version, firstKey }))
}

/** The first signal stops in order, and the process ends by itself with nothing left to do; the second ends it at once. */
function stopOnSignals(service: Service): void {
  let stopping = false
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stopping) process.exit(128 + constants.signals[signal])
      stopping = true
      console.log('Sluice is stopping: it answers what it has begun. Another signal ends it at once.')
      service.stop({ drains: signal === 'SIGTERM' }).catch(fail)
    })
  }
}

function fail(error: unknown): void {
  // A signal came before the start was over, and the stop has been told its outcome.
  if (isRuntimeError(error, 'SLUICE_RUNTIME_GRAPH_INTERRUPTED')) return
  // The cause says it in the words of the settings.
  const told = isRuntimeError(error, 'SLUICE_RUNTIME_PART_START_FAILED') ? error.cause : error
  if (told !== error && isRuntimeError(told, 'SLUICE_RUNTIME_PART_START_FAILED')) {
    fail(told)
    return
  }
  console.error(isServiceError(told) || isSluiceError(told) ? told.message : told)
  process.exitCode = 1
}

main().catch(fail)
