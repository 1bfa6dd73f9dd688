import type { ConfigStats } from '@sluice/config-store'
import type { ReadinessReason } from '@sluice/contract'
import { isRuntimeError, StartupGraph } from '@sluice/runtime'
import { sharedFailures } from './auth/failed-attempts.ts'
import { drawBytes } from './draw-bytes.ts'
import { assertPortFree } from './http/listen-error.ts'
import { readKeyFile } from './limits/admin-key.ts'
import { DatabaseHost } from './limits/config-database.ts'
import { sharedCounters } from './limits/counter-store.ts'
import type { LockedFolder } from './limits/data-folder.ts'
import { dataFolder, lockDataFolder } from './limits/data-folder.ts'
import { IdSource, MachineCells } from './limits/machine-cell.ts'
import { nodeNumbers } from './limits/node-numbers.ts'
import { SECRET_BYTES } from './limits/secret-file.ts'
import { SigningSecret } from './limits/signing-secret.ts'
import { followFromMain } from './limits/thread-following.ts'
import { ProcessWatch } from './process-watch.ts'
import type { Settings } from './settings.ts'
import type { ThreadServiceParts, ThreadSystem } from './thread-service.ts'
import { CONFIG_TOPIC, REASONS_TOPIC } from './thread-service.ts'
import type { Crew } from './threads/crew.ts'
import { singleCrew } from './threads/single-crew.ts'
import { superviseCrew } from './threads/supervised-crew.ts'

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
    // Before anything is written. The threads listen later, and find out whether it still holds.
    { name: 'port', start: () => assertPortFree(settings) },
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
