import type { ConfigStats } from '@sluice/config-store'
import type { ReadinessReason } from '@sluice/contract'
import { isRuntimeError, StartupGraph } from '@sluice/runtime'
import { sharedFailures } from './auth/failed-attempts.ts'
import { readKeyFile } from './config/admin-key.ts'
import { checkRulesFile } from './config/check-rules-file.ts'
import { DatabaseHost } from './config/config-database.ts'
import type { LockedFolder } from './config/data-folder.ts'
import { dataFolder, lockDataFolder } from './config/data-folder.ts'
import { followFromMain } from './config/follow-changes.ts'
import { SECRET_BYTES } from './config/secret-file.ts'
import { SigningSecret } from './config/signing-secret.ts'
import { sharedCounters } from './engine/counter-store.ts'
import { nodeNumbers } from './ids/machine-number-source.ts'
import { IdSource, MachineCells } from './ids/machine-numbers.ts'
import { assertPortFree } from './listeners/http/listen-error.ts'
import type { ThreadServiceParts, ThreadSystem } from './node.ts'
import { CONFIG_TOPIC, REASONS_TOPIC } from './node.ts'
import { ProcessWatch } from './process-watch.ts'
import { drawBytes } from './random-bytes.ts'
import type { Settings } from './settings.ts'
import { singleCrew } from './workers/single-worker.ts'
import { superviseCrew } from './workers/worker-threads.ts'
import type { Crew } from './workers/workers.ts'

/** Everything the service needs from outside. */
export interface ServiceParts {
  readonly settings: Settings
  /** For this thread; further threads have the system's own. */
  readonly system: ThreadSystem
  /** Is given the token of the first API key when it was just made: to show it, or where it was written, to whoever started this. */
  readonly showKey: (token: string) => void
}

/** The service, wired. It runs once. */
export interface Service {
  /** The port it listens on; undefined unless it is started. */
  readonly port: number | undefined
  start(): Promise<void>
  /**
   * Stops in order: not ready any more, what has begun is answered, then everything is closed. With `drains`, others are first
   * left the time that the settings say to send their requests elsewhere.
   */
  stop(options?: { readonly drains?: boolean }): Promise<void>
  /** Which rules are in force, where they are from and how current they are; undefined when no thread says so. */
  rules(): Promise<ConfigStats | undefined>
  /** All that is wrong now, as `/readyz` tells it; each reason once. */
  reasons(): Promise<readonly ReadinessReason[]>
}

/** Wires the service; nothing runs before `start`. */
export function composeService(parts: ServiceParts): Service {
  const { settings, system } = parts
  const folder = dataFolder(settings.dataDir)
  const nowMs = (): number => system.clock.nowMicros() / 1000
  const secret = new SigningSecret(settings.databaseUrl === undefined ? undefined : folder.secret)
  const follow = (): Promise<void> => followFromMain(crew.group)
  const host = new DatabaseHost({ ...parts, ...system, folder, secret, nowMs, follow })
  const { database } = host
  const cells = new MachineCells(settings.threads)
  const numbers = nodeNumbers({ ...system, settings, cells, database, nowMs })
  const ids = new IdSource(cells, 0, nowMs)
  const common = { settings, system, folder, database, secret: secret.bytes, nextId: () => ids.next() }
  const crew: Crew = crewOf(common, { secret: secret.memory, cells: cells.memory })
  const { rollups, documents } = database
  const watch = new ProcessWatch({ settings, system, folder, group: crew.group, rollups, documents, nowMs })
  let locked: LockedFolder | undefined
  const lock = async (): Promise<void> => {
    locked = await lockDataFolder(folder)
  }
  // What cannot be used is told before anything is written.
  const checkKeyFile = async (): Promise<void> => {
    if (settings.adminKeyFile !== undefined) await readKeyFile(settings.adminKeyFile)
  }
  const graph = new StartupGraph([
    { name: 'rules file', start: async () => void (await checkRulesFile(settings, system.clock)) },
    // Before anything is written. The threads listen later, and find out whether it still holds.
    { name: 'port', dependsOn: ['rules file'], start: () => assertPortFree(settings) },
    { name: 'key file', dependsOn: ['port'], start: checkKeyFile },
    { name: 'lock', dependsOn: ['key file'], start: lock, stop: () => locked?.unlock() },
    { name: 'secret', dependsOn: ['lock'], start: () => secret.start(drawBytes(system.secureRandom, SECRET_BYTES)) },
    { name: 'database', dependsOn: ['secret'], start: () => host.start(), stop: () => host.stop() },
    { name: 'numbers', dependsOn: ['database'], start: () => numbers.start(), stop: () => numbers.stop() },
    { name: 'alerts', dependsOn: ['numbers'], start: () => watch.openAlerts(), stop: () => watch.closeAlerts() },
    { name: 'crew', dependsOn: ['alerts'], start: () => crew.start(), stop: () => crew.stop() },
    { name: 'history', dependsOn: ['crew'], start: () => watch.keepHistory(), stop: () => watch.closeHistory() },
    // Last, so that no key is made by a start that fails.
    { name: 'first key', dependsOn: ['history'], start: () => host.issueFirstKey() },
  ])
  return {
    get port() {
      return crew.port
    },
    async start() {
      try {
        await graph.start()
      } catch (error) {
        // One that was interrupted is stopped by whoever interrupted it.
        if (!isRuntimeError(error, 'SLUICE_RUNTIME_GRAPH_INTERRUPTED')) await locked?.removeIfNew()
        throw error
      }
    },
    async stop({ drains = false } = {}) {
      await crew.drain(drains ? settings.drainMs : 0)
      await graph.stop()
    },
    async rules() {
      const [stats] = await crew.group.gather<ConfigStats>(CONFIG_TOPIC)
      return stats
    },
    async reasons() {
      const told = (await crew.group.gather<readonly ReadinessReason[]>(REASONS_TOPIC)).flat()
      return [...new Map(told.map((reason) => [reason.code, reason])).values()]
    },
  }
}

/** `memory`: what further threads share with this one. */
function crewOf(
  parts: Omit<ThreadServiceParts, 'threads' | 'checks' | 'shared' | 'failures' | 'port'>,
  memory: { readonly secret: SharedArrayBuffer; readonly cells: SharedArrayBuffer },
): Crew {
  const { settings, system } = parts
  if (settings.threads === 1) return singleCrew({ ...parts, shared: undefined, port: settings.port })
  const { clock } = system
  const counters = { shared: sharedCounters(settings, clock), failures: sharedFailures(clock) }
  return superviseCrew({ ...system, settings, ...memory, ...counters })
}
