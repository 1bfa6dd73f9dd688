import type { RuleSet, RuleSetChange } from '@sluice/core/policy'
import type { Author, Page, PageRequest, Seen } from './config-entries.ts'

/**
 * The rollout stage of a version. `draft`: no effect. `shadow`: evaluated and measured for every request, never
 * enforced. `percent`: enforced for a share of the callers, in shadow for the others. `enforce`: enforced for all
 * callers. `retired`: replaced by another version.
 */
export type VersionStage = 'draft' | 'shadow' | 'percent' | 'enforce' | 'retired'

/** A numbered rule set. The rule set is immutable; the stage changes. */
export interface Version {
  /** 1, 2, 3, ... */
  readonly number: number
  readonly stage: VersionStage
  /** Share of callers in stage `percent`, 0 to 100. 0 in all other stages. */
  readonly percent: number
  /** The version that was enforced when the author started editing. Undefined for the first version. */
  readonly basedOn: number | undefined
  /** Milliseconds since 1970. */
  readonly createdAt: number
  readonly createdBy: string
  /** When it was last enforced, in milliseconds since 1970. Undefined if it never was. */
  readonly enforcedAt: number | undefined
  readonly note: string | undefined
  /** Every change of stage assigns a new one. */
  readonly revision: number
}

/** A version with its rule set. */
export interface VersionContent extends Version {
  readonly ruleSet: RuleSet
}

/** The stage to move a version to. */
export type StageChange =
  | { readonly stage: 'shadow' | 'enforce' | 'retired' }
  | { readonly stage: 'percent'; readonly percent: number }

/**
 * Called with the rule set that is about to take effect and the enforced one, in the transaction of the change. If it
 * throws, the error is passed on and nothing changes.
 */
export type VersionApproval = (after: RuleSet, before: RuleSet) => void

/** Options of {@link VersionTable.rollback}. */
export interface RollbackOptions {
  /** The version to enforce. Default: the one that was enforced before. */
  readonly to?: number
  /** The version that the caller believes to be enforced. Default: not checked. */
  readonly ifVersion?: number
  readonly approve?: VersionApproval
}

/**
 * Immutable versions of the rule set. At most one is enforced, and at most one is the candidate (`shadow` or
 * `percent`).
 */
export interface VersionTable {
  /**
   * Stores a rule set as a draft. `SLUICE_INVALID_RULE_SET` lists all its problems. `basedOn`: the enforced version
   * that the author started from, 0 if there was none. The draft can only be enforced while that version is still the
   * enforced one.
   */
  create(ruleSet: RuleSet, author: Author, basedOn: number): Promise<Version>
  get(number: number): Promise<VersionContent | undefined>
  /** Newest first. */
  list(page?: PageRequest): Promise<Page<Version>>
  /** The enforced version and the candidate, if any. */
  current(): Promise<{ readonly enforced: Version | undefined; readonly candidate: Version | undefined }>
  /**
   * Changes the stage of a version. Fails with `SLUICE_CONFLICT` if `ifRevision` is not its revision, if it is to be
   * enforced and is not based on the enforced version, or if another version is the candidate. `approve` is not called
   * for stage `retired`.
   */
  stage(
    number: number,
    change: StageChange & Seen & { readonly approve?: VersionApproval },
    author: Author,
  ): Promise<Version>
  /**
   * Enforces the previously enforced version, or the one in `to`, atomically. A candidate is retired. Fails with
   * `SLUICE_CONFLICT` if `ifVersion` is not enforced: of two concurrent rollbacks from one version, the second fails.
   */
  rollback(author: Author, options?: RollbackOptions): Promise<Version>
  /**
   * Creates a version from the enforced one and enforces it, atomically. Fails with `SLUICE_CONFLICT` if `ifVersion` is
   * not enforced. If no version is enforced (`ifVersion` 0), `change` receives an empty rule set.
   */
  edit(change: (ruleSet: RuleSet) => RuleSet, author: Author, ifVersion?: number): Promise<Version>
  /** The differences between two versions. */
  diff(from: number, to: number): Promise<readonly RuleSetChange[]>
}
