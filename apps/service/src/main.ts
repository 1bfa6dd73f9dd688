import { constants } from 'node:os'
import { isRuntimeError, LogOutput, systemNowMs } from '@sluice/runtime'
import type { Service } from './compose.ts'
import { composeService } from './compose.ts'
import { readSettings } from './settings.ts'
import { settingsHelp } from './settings-help.ts'
import { firstKeyMessage, startupErrorText, startupMessage } from './startup-message.ts'
import { systemParts } from './system-parts.ts'

async function main(args: readonly string[]): Promise<void> {
  if (args.includes('--help')) {
    console.log(settingsHelp())
    return
  }
  const settings = readSettings({ args })
  const output = new LogOutput({ stream: process.stderr, nowMs: systemNowMs, level: settings.logLevel })
  const service = composeService({
    settings,
    system: systemParts(output),
    showKey: (token) => console.log(firstKeyMessage(token)),
  })
  stopOnSignals(service)
  await service.start()
  const [rules, reasons] = await Promise.all([service.rules(), service.reasons()])
  console.log(startupMessage({ settings, port: service.port ?? settings.port, rules, reasons }))
}

/** The first signal stops in order, and the process ends by itself with nothing left to do; the second ends it at once. */
function stopOnSignals(service: Service): void {
  let stopping = false
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stopping) process.exit(128 + constants.signals[signal])
      stopping = true
      console.log('Shutting down: finishing in-flight requests. Press Ctrl-C again to force.')
      service.stop({ drains: signal === 'SIGTERM' }).catch(fail)
    })
  }
}

function fail(error: unknown): void {
  // A signal came before the start was over, and the stop has been told its outcome.
  if (isRuntimeError(error, 'SLUICE_RUNTIME_GRAPH_INTERRUPTED')) return
  // A part of the start failed: its cause says why.
  if (isRuntimeError(error, 'SLUICE_RUNTIME_PART_START_FAILED')) {
    fail(error.cause)
    return
  }
  console.error(startupErrorText(error) ?? error)
  process.exitCode = 1
}

main(process.argv.slice(2)).catch(fail)
