import type { Author, ConfigFollower, ConfigStore } from '@sluice/config-store'
import type { RuleSet } from '@sluice/core'
import type { OperationRequest } from '../http/operation-handler.ts'
import { errorFields } from '../observability/error-fields.ts'
import type { ServiceContext } from '../service-context.ts'
import { authorOf } from './author.ts'
import type { ConfigReads } from './config-reads.ts'
import type { FileReads } from './file-reads.ts'
import type { Refusal } from './refusal.ts'
import { invalidRuleSet, RETRY_AFTER_SECONDS, refusal } from './refusal.ts'
import { RuleFit } from './rule-fit.ts'

/** What the admin API works with besides the context of the service. */
export interface AdminDesk {
  /** Where the rules come from, when it is no database; needed where `context.config` is undefined. */
  readonly file?: FileReads
  /** Where API keys are kept when the rules come from a file; without it there keys are neither listed nor changed. */
  readonly keys?: KeyDatabase
}

/** A database of which only the API keys count, and what keeps this node up to date with it. */
export interface KeyDatabase {
  readonly config: ConfigStore
  readonly follower: ConfigFollower
}

/** The configuration, as the admin API reads and changes it. */
export class ConfigAccess {
  readonly #context: ServiceContext
  readonly #desk: AdminDesk
  /** Says whether rules fit into the memory of this service. */
  readonly fit: RuleFit

  constructor(context: ServiceContext, desk: AdminDesk) {
    this.#context = context
    this.#desk = desk
    this.fit = new RuleFit(context.settings)
  }

  /** Refuses rules whose states do not fit; `placeOf` turns a place in them into one in the body of the request. */
  refuseUnfit(ruleSet: RuleSet, placeOf: (path: string) => string = (path) => path): void {
    const problems = this.fit.problemsOf(ruleSet)
    if (problems.length > 0) throw invalidRuleSet(problems.map((one) => ({ ...one, path: placeOf(one.path) })))
  }

  /** What is there: in the database, or in the file. */
  get reads(): ConfigReads {
    const reads = this.#context.config ?? this.#desk.file
    if (reads !== undefined) return reads
    throw notReached()
  }

  /** API keys and the audit log: of the database, also where the rules come from a file. */
  get keyReads(): Pick<ConfigReads, 'apiKeys' | 'audit'> {
    return this.#context.config ?? this.#desk.keys?.config ?? this.reads
  }

  /**
   * Changes something, in the name of whoever asks. When it is answered, it is in force here; on all other nodes soon after.
   * Refused where the rules come from a file.
   */
  async change<T>(request: OperationRequest, change: (config: ConfigStore, author: Author) => Promise<T>): Promise<T> {
    return await this.#change(request, change, this.#context)
  }

  /** The same for API keys, which are also changed where the rules come from a file. */
  async changeKeys<T>(
    request: OperationRequest,
    change: (config: ConfigStore, author: Author) => Promise<T>,
  ): Promise<T> {
    return await this.#change(request, change, this.#context.config === undefined ? this.#desk.keys : this.#context)
  }

  async #change<T>(
    request: OperationRequest,
    change: (config: ConfigStore, author: Author) => Promise<T>,
    where: Pick<ServiceContext, 'config' | 'follower'> | undefined,
  ): Promise<T> {
    if (where?.config === undefined) throw this.#unchangeable()
    const result = await change(where.config, authorOf(request))
    await this.#follow(where.follower)
    return result
  }

  #unchangeable(): Refusal {
    const { file } = this.#desk
    if (file === undefined) return notReached()
    return refusal('SLUICE_HTTP_CONFLICT', `The rules come from ${file.file}: change that.`)
  }

  /** The change is made by now: that it is not in force here yet is no failure of the request. */
  async #follow(follower: ConfigFollower): Promise<void> {
    try {
      await follower.refresh()
    } catch (error) {
      this.#context.log.warn('a change could not be followed at once', { error: errorFields(error) })
    }
  }
}

function notReached(): Refusal {
  return refusal('SLUICE_HTTP_CONFIG_UNAVAILABLE', 'The configuration database was not reached yet. Try again.', {
    'Retry-After': RETRY_AFTER_SECONDS,
  })
}
