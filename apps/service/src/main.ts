import { constants } from 'node:os'
import { setFlagsFromString } from 'node:v8'
import { systemRandom } from '@sluice/core'
import { isRuntimeError, LogOutput, systemNowMs } from '@sluice/runtime'
import { systemOfProcess } from './clock-and-random.ts'
import { recoverAdminKey } from './config/admin-key.ts'
import { dataFolder } from './config/data-folder.ts'
import type { Service } from './service.ts'
import { createService } from './service.ts'
import { NEW_ADMIN_KEY, settingsHelp } from './settings/setting-table.ts'
import { adminOriginOf, originOf, readSettings } from './settings/settings.ts'
import { firstKeyMessage, recoveredKeyMessage, startupErrorText, startupMessage } from './startup-message.ts'

// A check passes through some sixty small functions, and V8 stops inlining after a few of them. Between two system
// calls, when the processor has forgotten them all, calls cost more than code: this saves a twelfth of the CPU time of
// a check that comes alone. See docs/decisions/2026-11-18-one-check-at-a-time.md.
setFlagsFromString('--max-inlined-bytecode-size-cumulative=4000')
// V8 learns which objects survive early collections, and then allocates their kind in the old generation. During
// start-up these can be parts of requests; each then keeps its whole request alive in young collections. In about one
// process in five this costs a third of the throughput and causes pauses of 20 ms. See
// docs/decisions/2026-11-18-gateway.md.
setFlagsFromString('--no-allocation-site-pretenuring')

async function main(args: readonly string[]): Promise<void> {
  if (args.includes('--help')) {
    console.log(settingsHelp())
    return
  }
  const settings = readSettings({ args: args.filter((arg) => arg !== NEW_ADMIN_KEY) })
  if (args.includes(NEW_ADMIN_KEY)) {
    console.log(recoveredKeyMessage(await recoverAdminKey(settings, dataFolder(settings.dataDir), systemRandom)))
    return
  }
  const output = new LogOutput({ stream: process.stderr, nowMs: systemNowMs, level: settings.logLevel })
  const service = createService({
    settings,
    system: systemOfProcess(output),
    showKey: (token) => {
      console.log(firstKeyMessage(token, settings.adminKeyFile))
      if (settings.adminKeyFile === undefined) sendToParent({ event: 'firstKey', firstKey: token })
    },
  })
  stopOnSignals(service)
  await service.start()
  const [rules, reasons] = await Promise.all([service.rules(), service.reasons()])
  const { ports } = service
  console.log(startupMessage({ settings, ports, rules, reasons }))
  const adminUrl = settings.admin && { adminUrl: adminOriginOf(settings, ports) }
  sendToParent({ event: 'started', url: originOf(settings, ports.http), ...adminUrl })
}

/** For a parent that started this process with an IPC channel, so that it need not parse the printed text. */
type ParentMessage =
  | { readonly event: 'firstKey'; readonly firstKey: string }
  | { readonly event: 'started'; readonly url: string; readonly adminUrl?: string }

function sendToParent(message: ParentMessage): void {
  if (process.connected) process.send?.(message)
}

/** The first signal stops gracefully, the second one at once. */
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
  // A signal interrupted the start; `stop` reports the outcome.
  if (isRuntimeError(error, 'SLUICE_RUNTIME_GRAPH_INTERRUPTED')) return
  // The cause says why the part failed.
  if (isRuntimeError(error, 'SLUICE_RUNTIME_PART_START_FAILED')) {
    fail(error.cause)
    return
  }
  console.error(startupErrorText(error) ?? error)
  process.exitCode = 1
}

main(process.argv.slice(2)).catch(fail)
