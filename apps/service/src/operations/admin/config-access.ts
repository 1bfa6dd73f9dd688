import type { Author, ConfigStore } from '@sluice/config-store'
import type { RuleSet } from '@sluice/core/policy'
import type { AnnounceBlock } from '../../alerts/block-export.ts'
import type { ConfigReads, DatabaseReads, FileConfigReads } from '../../config/config-reads.ts'
import type { FollowedDatabase } from '../../config/follow-changes.ts'
import { followInAllThreads } from '../../config/follow-changes.ts'
import { StateSizeCheck } from '../../config/state-size-check.ts'
import type { ServiceContext } from '../../service-context.ts'
import type { AnyRequest } from '../handler.ts'
import type { PlaceOf, ProblemError } from '../problems.ts'
import { invalidRuleSet, placedProblem, problemError, RETRY_AFTER_SECONDS } from '../problems.ts'
import { authorOf } from './admin-requests.ts'
import type { AuditNotes } from './audit.ts'

/** What the admin API works with besides the context of the service. */
export interface AdminOptions {
  /** Where the rules come from, when it is no database; needed where `context.config` is undefined. */
  readonly file?: FileConfigReads
  /** Where everything else is kept when the rules come from a file. */
  readonly database?: FollowedDatabase
  /** Callback for blocks that are set and lifted here. Default: none. */
  readonly announceBlock?: AnnounceBlock
}

/** The configuration, as the admin API reads and changes it. */
export class ConfigAccess {
  readonly #context: ServiceContext
  readonly #options: AdminOptions
  /** Says whether rules fit into the memory of this service. */
  readonly fit: StateSizeCheck

  constructor(context: ServiceContext, options: AdminOptions) {
    this.#context = context
    this.#options = options
    this.fit = new StateSizeCheck(context.settings)
  }

  /** Rejects rules whose states do not fit; `placeOf` turns a place in them into one in the body of the request. */
  rejectUnfit(ruleSet: RuleSet, placeOf: PlaceOf = (path) => path): void {
    const problems = this.fit.problemsOf(ruleSet)
    if (problems.length > 0) throw invalidRuleSet(problems.map((one) => placedProblem(one, placeOf)))
  }

  /** What a file may have: in the file, where the rules come from one, or in the database. */
  get reads(): ConfigReads {
    const reads = this.#context.config ?? this.#options.file
    if (reads !== undefined) return reads
    throw notReached()
  }

  /** What no file has: in the database, also where the rules come from a file. */
  get databaseReads(): DatabaseReads {
    const reads = this.#context.config ?? this.#options.database?.config
    if (reads !== undefined) return reads
    throw notReached()
  }

  /**
   * Makes a change on behalf of the caller. When it resolves, all threads of this node apply the change; other nodes
   * follow soon after. Rejected if the rules come from a file.
   */
  async change<T>(request: AnyRequest, change: (config: ConfigStore, author: Author) => Promise<T>): Promise<T> {
    return await this.#change(request, change, this.#context)
  }

  /** The same for what no file has, which is also changed where the rules come from a file. */
  async changeInDatabase<T>(
    request: AnyRequest,
    change: (config: ConfigStore, author: Author) => Promise<T>,
  ): Promise<T> {
    const { config } = this.#context
    return await this.#change(request, change, config === undefined ? this.#options.database : this.#context)
  }

  async #change<T>(
    request: AnyRequest,
    change: (config: ConfigStore, author: Author) => Promise<T>,
    where: Pick<ServiceContext, 'config' | 'follower'> | undefined,
  ): Promise<T> {
    if (where?.config === undefined) throw this.#unchangeable()
    const result = await change(where.config, authorOf(request))
    const { threads, log } = this.#context
    await followInAllThreads({ threads, log, follower: where.follower })
    return result
  }

  #unchangeable(): ProblemError {
    const { file } = this.#options
    if (file === undefined) return notReached()
    return problemError(
      'SLUICE_HTTP_CONFLICT',
      `Rules, tiers, exemptions, the deny list, overrides and members come from ${file.file}. Change them there: ` +
        'the file is followed, and needs no restart. Blocks, the incident and API keys are changed here.',
    )
  }
}

function notReached(): ProblemError {
  return problemError('SLUICE_HTTP_CONFIG_UNAVAILABLE', 'The configuration database was not reached yet. Try again.', {
    'Retry-After': RETRY_AFTER_SECONDS,
  })
}

/** What the handlers of the admin API share. */
export interface AdminContext {
  readonly context: ServiceContext
  readonly access: ConfigAccess
  readonly notes: AuditNotes
  readonly announceBlock: AnnounceBlock
}
