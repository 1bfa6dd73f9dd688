import { openConfigStore } from '@sluice/config-store'
import type { Logger, NowMs, Sleep } from '@sluice/runtime'
import { errorFields } from '../observability/error-fields.ts'
import type { Settings } from '../settings.ts'
import type { DataFolder } from './data-folder.ts'
import { prepareFirstStart } from './first-start.ts'
import { LateConfigStore } from './late-config-store.ts'
import type { SigningSecret } from './signing-secret.ts'

/** The database that the settings name, opened when it is first used. Nothing is written to it by that. */
export function configDatabase(settings: Settings, folder: DataFolder, nowMs: NowMs): LateConfigStore {
  return new LateConfigStore(() => openConfigStore(addressOf(settings, folder), { nowMs }))
}

function addressOf({ databaseUrl }: Settings, { database }: DataFolder): string {
  return databaseUrl ?? `sqlite:${database}`
}

/** What a {@link DatabaseHost} works with. */
export interface DatabaseHostParts {
  readonly settings: Settings
  readonly folder: DataFolder
  readonly secret: SigningSecret
  readonly nowMs: NowMs
  readonly sleep: Sleep
  readonly log: Logger
  /** Is given the token of the first API key when it was just made. */
  readonly showKey: (token: string) => void
}

const RETRY_MS = 2000

/** Of so many tries that fail one is told of: one in a minute. */
const TOLD_EVERY = 30

/**
 * Looks after the configuration database for a whole process: makes an empty one usable, and learns what all nodes must know. When
 * it cannot be reached at the start, that is done as soon as it can.
 */
export class DatabaseHost {
  readonly database: LateConfigStore
  readonly #parts: DatabaseHostParts
  readonly #stopped = new AbortController()
  #waiting: Promise<void> = Promise.resolve()
  #failures = 0

  constructor(parts: DatabaseHostParts) {
    this.#parts = parts
    const { settings, folder, nowMs, secret, showKey } = parts
    const withRules = settings.rulesFile === undefined
    this.database = new LateConfigStore(async () => {
      const store = await openConfigStore(addressOf(settings, folder), { nowMs })
      try {
        await secret.learn(store)
        const token = await prepareFirstStart(store, { withRules })
        if (token !== undefined) showKey(token)
        return store
      } catch (error) {
        await store.close()
        throw error
      }
    })
  }

  /** Resolves after the first try, whether it succeeded or not. */
  async start(): Promise<void> {
    if (await this.#isOpened()) return
    this.#waiting = this.#wait()
  }

  async stop(): Promise<void> {
    this.#stopped.abort()
    await this.#waiting
    await this.database.close()
  }

  async #wait(): Promise<void> {
    const { sleep } = this.#parts
    const { signal } = this.#stopped
    do {
      try {
        await sleep(RETRY_MS, signal)
      } catch {
        return
      }
    } while (!(await this.#isOpened()))
  }

  async #isOpened(): Promise<boolean> {
    const { log } = this.#parts
    try {
      await this.database.opened()
      if (this.#failures > 0) log.info('the configuration database is reached', { triesBefore: this.#failures })
      return true
    } catch (error) {
      if (this.#failures % TOLD_EVERY === 0) {
        log.warn('the configuration database cannot be reached; it is tried again', { error: errorFields(error) })
      }
      this.#failures++
      return false
    }
  }
}
