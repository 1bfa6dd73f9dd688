import type { ConfigStats } from '@sluice/config-store'
import { StartupGraph } from '@sluice/runtime'
import { sharedFailures } from './auth/failed-attempts.ts'
import { drawBytes } from './draw-bytes.ts'
import { DatabaseHost } from './limits/config-database.ts'
import { sharedCounters } from './limits/counter-store.ts'
import { dataFolder, lockDataFolder } from './limits/data-folder.ts'
import { IdSource, MachineCells } from './limits/machine-cell.ts'
import { nodeNumbers } from './limits/node-numbers.ts'
import { SECRET_BYTES } from './limits/secret-file.ts'
import { SigningSecret } from './limits/signing-secret.ts'
import { ProcessWatch } from './process-watch.ts'
import type { Settings } from './settings.ts'
import type { ThreadServiceParts, ThreadSystem } from './thread-service.ts'
import { CONFIG_TOPIC } from './thread-service.ts'
import type { Crew } from './threads/crew.ts'
import { singleCrew } from './threads/single-crew.ts'
import { superviseCrew } from './threads/supervised-crew.ts'

/** Everything the service needs from outside. */
export interface ServiceParts {
  readonly settings: Settings
  /** For this thread; further threads have the system's own. */
  readonly system: ThreadSystem
  /** Is given the token of the first API key, which is kept nowhere, when it was just made: to show it to whoever started this. */
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
}

/** Wires the service; nothing runs before `start`. */
export function composeService(parts: ServiceParts): Service {
  const { settings, system } = parts
  const folder = dataFolder(settings.dataDir)
  const nowMs = (): number => system.clock.nowMicros() / 1000
  const secret = new SigningSecret(settings.databaseUrl === undefined ? undefined : folder.secret)
  const host = new DatabaseHost({ ...parts, ...system, folder, secret, nowMs })
  const { database } = host
  const cells = new MachineCells(settings.threads)
  const numbers = nodeNumbers({ ...system, settings, cells, database, nowMs })
  const ids = new IdSource(cells, 0, nowMs)
  const common = { settings, system, folder, database, secret: secret.bytes, nextId: () => ids.next() }
  const crew = crewOf(common, { secret: secret.memory, cells: cells.memory })
  const watch = new ProcessWatch({ settings, system, folder, group: crew.group, rollups: database.rollups, nowMs })
  let unlock: (() => Promise<void>) | undefined
  const lock = async (): Promise<void> => {
    unlock = await lockDataFolder(folder)
  }
  const graph = new StartupGraph([
    { name: 'lock', start: lock, stop: () => unlock?.() },
    { name: 'secret', dependsOn: ['lock'], start: () => secret.start(drawBytes(system.secureRandom, SECRET_BYTES)) },
    { name: 'database', dependsOn: ['secret'], start: () => host.start(), stop: () => host.stop() },
    { name: 'numbers', dependsOn: ['database'], start: () => numbers.start(), stop: () => numbers.stop() },
    { name: 'alerts', dependsOn: ['numbers'], start: () => watch.openAlerts(), stop: () => watch.closeAlerts() },
    { name: 'crew', dependsOn: ['alerts'], start: () => crew.start(), stop: () => crew.stop() },
    { name: 'history', dependsOn: ['crew'], start: () => watch.keepHistory(), stop: () => watch.closeHistory() },
  ])
  return {
    get port() {
      return crew.port
    },
    start: () => graph.start(),
    async stop({ drains = false } = {}) {
      await crew.drain(drains ? settings.drainMs : 0)
      await graph.stop()
    },
    async rules() {
      const [stats] = await crew.group.gather<ConfigStats>(CONFIG_TOPIC)
      return stats
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
