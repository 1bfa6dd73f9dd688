import { constants } from 'node:os'
import { systemClock } from '@sluice/core'
import { isRuntimeError, systemSleep } from '@sluice/runtime'
import type { Service } from './compose.ts'
import { composeService } from './compose.ts'
import { isServiceError } from './service-error.ts'
import { readSettings } from './settings.ts'
import { startupMessage } from './startup-message.ts'

async function main(): Promise<void> {
  const settings = readSettings()
  const service = composeService({ settings, clock: systemClock, sleep: systemSleep, reportError: console.error })
  stopOnSignals(service)
  await service.start()
  console.log(startupMessage({ host: settings.host, port: service.port ?? settings.port, rule: service.rule }))
}

/** The first signal stops in order, and the process ends by itself with nothing left to do; the second ends it at once. */
function stopOnSignals(service: Service): void {
  let stopping = false
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stopping) process.exit(128 + constants.signals[signal])
      stopping = true
      console.log('Sluice is stopping: it answers what it has begun. Another signal ends it at once.')
      service.stop().catch(fail)
    })
  }
}

function fail(error: unknown): void {
  // A signal came before the start was over, and the stop has been told its outcome.
  if (isRuntimeError(error, 'SLUICE_RUNTIME_GRAPH_INTERRUPTED')) return
  // The cause says it in the words of the settings.
  const told = isRuntimeError(error, 'SLUICE_RUNTIME_PART_START_FAILED') ? error.cause : error
  console.error(isServiceError(told) ? told.message : told)
  process.exitCode = 1
}

main().catch(fail)
