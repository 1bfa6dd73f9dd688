import { randomBytes } from 'node:crypto'
import { openConfigStore } from '@sluice/config-store'
import type { Clock } from '@sluice/core'
import type { Logger, LoopDelay, Random, Sleep } from '@sluice/runtime'
import { SnowflakeGenerator, StartupGraph } from '@sluice/runtime'
import { lockDataFolder, dataFolder } from './limits/data-folder.ts'
import { prepareFirstStart } from './limits/first-start.ts'
import { LateConfigStore } from './limits/late-config-store.ts'
import { readSecret, SECRET_BYTES, writeSecret } from './limits/secret-file.ts'
import type { Settings } from './settings.ts'
import type { ThreadService } from './thread-service.ts'
import { composeThread } from './thread-service.ts'
import { SingleThread } from './threads/thread-group.ts'

/** Everything the service needs from outside. */
export interface ServiceParts {
  readonly settings: Settings
  readonly clock: Clock
  readonly sleep: Sleep
  readonly random: Random
  readonly log: Logger
  readonly loopDelay: LoopDelay
  /** Shown to whoever started the service: the first API key, which is kept nowhere else. */
  readonly showKey: (token: string) => void
}

/** The service, wired. */
export interface Service {
  start(): Promise<void>
  /** Stops in order. With `drains`, others are first left the time of the settings to send their requests elsewhere. */
  stop(options?: { readonly drains?: boolean }): Promise<void>
  /** The port it listens on; undefined unless it is started. */
  readonly port: number | undefined
  /** Number of the rules in force; undefined while there are none. */
  readonly version: number | undefined
}

/** Wires the service; nothing runs before `start`. */
export function composeService(parts: ServiceParts): Service {
  const { settings, clock, sleep } = parts
  const folder = dataFolder(settings.dataDir)
  const nowMs = (): number => clock.nowMicros() / 1000
  const config = new LateConfigStore(async () => {
    const store = await openConfigStore(settings.databaseUrl ?? `sqlite:${folder.database}`, { nowMs })
    const token = await prepareFirstStart(store, sleep)
    if (token !== undefined) parts.showKey(token)
    return store
  })
  const secret = new Uint8Array(SECRET_BYTES)
  const ids = new SnowflakeGenerator({ datacenter: 0, machine: settings.machine ?? 0, nowMs })
  let unlock: (() => Promise<void>) | undefined
  let thread: ThreadService | undefined
  const graph = new StartupGraph([
    {
      name: 'lock',
      start: async () => {
        unlock = await lockDataFolder(folder)
      },
      stop: () => unlock?.(),
    },
    {
      name: 'secret',
      dependsOn: ['lock'],
      start: async () => {
        const known = await readSecret(folder.secret)
        secret.set(known ?? randomBytes(SECRET_BYTES))
        if (known === undefined) await writeSecret(folder.secret, secret)
      },
    },
    { name: 'config', dependsOn: ['lock'], stop: () => config.close() },
    {
      name: 'thread',
      dependsOn: ['config', 'secret'],
      start: async () => {
        thread = composeThread({
          ...parts,
          folder,
          threads: new SingleThread(),
          config,
          shared: undefined,
          secret,
          nextId: () => ids.nextString(),
          port: settings.port,
          sharesPort: false,
          readinessChecks: [],
        })
        await thread.start()
      },
      stop: () => thread?.stop(),
    },
  ])
  return {
    start: () => graph.start(),
    async stop({ drains = false } = {}) {
      await thread?.drain(drains ? settings.drainMs : 0)
      await graph.stop()
    },
    get port() {
      return thread?.port
    },
    get version() {
      return thread?.context.follower.stats().enforcedVersion
    },
  }
}
