import type { ConfigStore } from '@sluice/config-store'
import { openConfigStore } from '@sluice/config-store'
import type { Random } from '@sluice/core'
import { isSluiceError } from '@sluice/core'
import type { RuleSet } from '@sluice/core/policy'
import type { Logger, NowMs, Sleep } from '@sluice/runtime'
import { errorFields } from '../observability/error-fields.ts'
import { isServiceError } from '../service-error.ts'
import type { Settings } from '../settings/settings.ts'
import { createFirstKey } from './admin-key.ts'
import type { DataFolder } from './data-folder.ts'
import { databaseAddress } from './data-folder.ts'
import { ReconnectingConfigStore } from './reconnecting-config-store.ts'
import type { SigningSecret } from './signing-secret.ts'

/** The database of the settings, opened on first use. */
export function configDatabase(settings: Settings, folder: DataFolder, nowMs: NowMs): ReconnectingConfigStore {
  return new ReconnectingConfigStore(() => openConfigStore(databaseAddress(settings, folder), { nowMs }))
}

/** Options of {@link DatabaseHost}. */
export interface DatabaseHostParts {
  readonly settings: Settings
  readonly folder: DataFolder
  readonly secret: SigningSecret
  readonly nowMs: NowMs
  readonly sleep: Sleep
  readonly log: Logger
  /** Resolves when all threads have applied what was committed before the call. */
  readonly follow: () => Promise<void>
  readonly secureRandom: Random
  /** Receives the first API key once it is created and all threads know it. */
  readonly showKey: (token: string) => void
}

const RETRY_MS = 2000

/** Only one of this many failures is logged: one per minute. */
const TOLD_EVERY = 30

/**
 * The configuration database of a process. Initializes an empty one, and reads what all nodes share. If it is
 * unreachable at the start, that is done as soon as it is reachable.
 */
export class DatabaseHost {
  readonly database: ReconnectingConfigStore
  readonly #parts: DatabaseHostParts
  readonly #stopped = new AbortController()
  #needsKey = false
  #retrying: Promise<void> | undefined
  #failures = 0

  constructor(parts: DatabaseHostParts) {
    this.#parts = parts
    const { settings, folder, nowMs, secret } = parts
    this.database = new ReconnectingConfigStore(async () => {
      const store = await openConfigStore(databaseAddress(settings, folder), { nowMs })
      try {
        await secret.learn(store)
        if (settings.rulesFile === undefined) await enforceFirstRules(store)
        return store
      } catch (error) {
        await store.close()
        throw error
      }
    })
  }

  /** Opens the database. Resolves after the first attempt, successful or not. */
  async start(): Promise<void> {
    if (!(await this.#isDone())) this.#retrying = this.#retry()
  }

  /**
   * Creates the first API key unless there is one, and shows it. Call it once the service listens: a failed start must
   * not create a key. Resolves after the first attempt, successful or not; rejects if the key file cannot be used.
   */
  async issueFirstKey(): Promise<void> {
    this.#needsKey = true
    // The retry that opens the database creates the key as well.
    if (this.#retrying !== undefined) return
    try {
      await this.#prepare()
    } catch (error) {
      if (isServiceError(error)) throw error
      this.#noteFailure(error)
      this.#retrying = this.#retry()
    }
  }

  async stop(): Promise<void> {
    this.#stopped.abort()
    await this.#retrying
    await this.database.close()
  }

  async #retry(): Promise<void> {
    const { sleep } = this.#parts
    const { signal } = this.#stopped
    do {
      try {
        await sleep(RETRY_MS, signal)
      } catch {
        return
      }
    } while (!(await this.#isDone()) || this.#needsKey)
    this.#retrying = undefined
  }

  async #isDone(): Promise<boolean> {
    try {
      await this.#prepare()
      return true
    } catch (error) {
      this.#noteFailure(error)
      return false
    }
  }

  async #prepare(): Promise<void> {
    const store = await this.database.opened()
    if (this.#needsKey) await this.#issueKey(store)
    const { log } = this.#parts
    if (this.#failures > 0) log.info('the configuration database is available', { triesBefore: this.#failures })
    this.#failures = 0
  }

  #noteFailure(error: unknown): void {
    if (this.#failures % TOLD_EVERY === 0) {
      const what = isServiceError(error)
        ? 'could not create the first API key'
        : 'could not use the configuration database'
      this.#parts.log.warn(`${what}; retrying`, { error: errorFields(error) })
    }
    this.#failures++
  }

  async #issueKey(store: ConfigStore): Promise<void> {
    const { settings, secureRandom, log } = this.#parts
    const token = await createFirstKey(store, { file: settings.adminKeyFile, secureRandom, log })
    this.#needsKey = false
    if (token === undefined) return
    await this.#parts.follow()
    this.#parts.showKey(token)
  }
}

/** Paths of health checks. */
const HEALTH_PATHS = ['/health', '/healthz', '/livez', '/readyz']

/**
 * The rules of a new database: enough for a person, too little for a flood. An address that keeps exceeding its limit
 * is blocked: 1,000 denials per minute are 17 requests per second above the limit, or ten times the limit for about a
 * second.
 */
export const FIRST_RULES: RuleSet = {
  rules: [
    { name: 'default-user', resource: '*', dimension: 'user', limit: 100, window: '1m' },
    {
      ...{ name: 'default-ip', resource: '*', dimension: 'ip', limit: 100, window: '1s' },
      penalty: { after: 1000, within: '1m', block: '5m' },
    },
  ],
  exemptions: HEALTH_PATHS.map((resource) => ({ name: resource.slice(1), match: { resource } })),
  incident: 0.5,
}

const AUTHOR = { name: 'first start' }

/** Enforces {@link FIRST_RULES} unless there is a version. Several nodes may do this at the same time. */
export async function enforceFirstRules(config: ConfigStore): Promise<void> {
  const { items } = await config.versions.list({ limit: 1 })
  if (items.length > 0) return
  try {
    await config.versions.edit(() => FIRST_RULES, AUTHOR, 0)
  } catch (error) {
    // Another node was first.
    if (!isSluiceError(error, 'SLUICE_CONFLICT')) throw error
  }
}
