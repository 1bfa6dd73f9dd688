import type { Author, ConfigStore, ExternalAction, Seen } from '@sluice/config-store'
import type { Clock } from '@sluice/core'
import { isSluiceError } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import type { PolicyObserver, RuleSet } from '@sluice/core/policy'
import type { AnnounceBlock } from '../../alerts/block-export.ts'
import type { ConfigReads, DatabaseReads, FileConfigReads } from '../../config/config-reads.ts'
import type { FollowedDatabase } from '../../config/follow-changes.ts'
import { followInAllThreads } from '../../config/follow-changes.ts'
import { StateSizeCheck } from '../../config/state-size-check.ts'
import type { ServiceContext } from '../../service-context.ts'
import type { AnyRequest, RequestContext } from '../handler.ts'
import type { PlaceOf, ProblemError } from '../problems.ts'
import {
  changedMeanwhile,
  invalidRequest,
  invalidRuleSet,
  placedProblem,
  problemError,
  RETRY_AFTER_SECONDS,
} from '../problems.ts'

/** What the admin API needs besides the context of the service. */
export interface AdminOptions {
  /** Source of the rules if it is not a database; required if `context.config` is undefined. */
  readonly file?: FileConfigReads
  /** Where everything else is stored if the rules come from a file. */
  readonly database?: FollowedDatabase
  /** Callback for blocks that are set and lifted here. Default: none. */
  readonly announceBlock?: AnnounceBlock
  /** Observes blocks that are set here. Default: none. */
  readonly observe?: PolicyObserver
}

/** Access to the configuration for the admin API. */
export class ConfigAccess {
  readonly #context: ServiceContext
  readonly #options: AdminOptions
  /** Checks whether rules fit into the memory of this service. */
  readonly fit: StateSizeCheck

  constructor(context: ServiceContext, options: AdminOptions) {
    this.#context = context
    this.#options = options
    this.fit = new StateSizeCheck(context.settings)
  }

  /** Rejects rules whose states do not fit; `placeOf` maps a path in them to one in the body of the request. */
  rejectUnfit(ruleSet: RuleSet, placeOf: PlaceOf = (path) => path): void {
    const problems = this.fit.problemsOf(ruleSet)
    if (problems.length > 0) throw invalidRuleSet(problems.map((one) => placedProblem(one, placeOf)))
  }

  /** What a file can contain: in the file if the rules come from one, else in the database. */
  get reads(): ConfigReads {
    const reads = this.#context.config ?? this.#options.file
    if (reads !== undefined) return reads
    throw notReached()
  }

  /** What a file cannot contain: in the database, even if the rules come from a file. */
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

  /** The same for what a file cannot contain; allowed even if the rules come from a file. */
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

/** Shared parts of the handlers of the admin API. */
export interface AdminContext {
  readonly context: ServiceContext
  readonly access: ConfigAccess
  /** Records actions in the audit log other than changes of the configuration. */
  readonly notes: { note(request: AnyRequest, done: ExternalAction): Promise<void> }
  readonly announceBlock: AnnounceBlock
  readonly observe: PolicyObserver
}

/** Author and reason of a change, for the audit log. */
export function authorOf({ principal, body }: Pick<AnyRequest, 'principal' | 'body'>): Author {
  // The operation table requires a role for every change, so every change has an author.
  if (principal === undefined) throw new Error('a change was asked for without an API key')
  const note = typeof body === 'object' && body !== null && 'note' in body ? body.note : undefined
  return { name: principal.name, keyId: principal.id, ...(typeof note === 'string' ? { note } : {}) }
}

/** The revision that the editor has seen. `current`: the existing revision; undefined if there is none. */
export async function seenBy(
  { precondition }: RequestContext,
  current: () => Promise<number | undefined>,
): Promise<Seen> {
  if (precondition === undefined) return {}
  if (precondition === 'none') return { ifRevision: 0 }
  if (precondition !== 'any') return { ifRevision: precondition }
  const revision = await current()
  if (revision === undefined) throw missing()
  return { ifRevision: revision }
}

/** Rejects a change of something that must exist and does not, or the reverse. */
export function rejectUnexpected({ precondition }: RequestContext, isThere: boolean): void {
  if (precondition === 'any' && !isThere) throw missing()
  if (precondition === 'none' && isThere) throw changedMeanwhile('something is there already')
}

/**
 * Runs a change with `If-Match` or `If-None-Match`: a conflict is 412 for a request with one of them, and 409 for
 * others.
 */
export async function underPrecondition<T>({ precondition }: RequestContext, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (precondition === undefined || !isSluiceError(error, 'SLUICE_CONFLICT')) throw error
    throw changedMeanwhile(error.expected === undefined ? 'something else is there' : `now it is ${error.expected}`)
  }
}

/** The answer if `If-Match: *` requires something that does not exist. */
function missing(): ProblemError {
  return changedMeanwhile('nothing is there')
}

/** The expiry in a request. */
export interface Expiry {
  /** Its path in the body. */
  readonly path: string
  /** Milliseconds since 1970; undefined for none. */
  readonly at: number | undefined
}

/** Rejects an expiry in the past: usually an instant in seconds instead of milliseconds. */
export function rejectEnded(clock: Clock, expiries: readonly Expiry[]): void {
  const nowMs = clock.nowMicros() / MICROS_PER_MS
  const ended = expiries.filter(({ at }) => at !== undefined && at <= nowMs)
  if (ended.length === 0) return
  throw invalidRequest(
    ...ended.map(({ path, at }) => ({
      path,
      received: `${at}, which is ${new Date(at!).toISOString()}`,
      expected: 'an instant in the future, in milliseconds since 1970',
    })),
  )
}
