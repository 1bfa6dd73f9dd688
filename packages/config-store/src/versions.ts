import type { RuleSet, RuleSetChange } from '@sluice/core'
import type { Author, Page, PageRequest, Seen } from './entries.ts'

/**
 * Where a version stands. `draft`: it has no effect. `shadow`: evaluated and measured for every request, never enforced.
 * `percent`: enforced for a share of the callers, in shadow for the others. `enforce`: enforced for all. `retired`: another
 * one took its place.
 */
export type VersionStage = 'draft' | 'shadow' | 'percent' | 'enforce' | 'retired'

/** A rule set with a number. The rule set never changes, its stage does. */
export interface Version {
  /** 1, 2, 3, ... */
  readonly number: number
  readonly stage: VersionStage
  /** Share of callers in stage `percent`, 0 to 100; else 0. */
  readonly percent: number
  /** The version that was enforced when the author began; undefined for the first. */
  readonly basedOn: number | undefined
  /** Milliseconds since 1970. */
  readonly createdAt: number
  readonly createdBy: string
  readonly note: string | undefined
  /** Another with every change of stage. */
  readonly revision: number
}

/** A version and what is in it. */
export interface VersionContent extends Version {
  readonly ruleSet: RuleSet
}

/** What becomes of a version. */
export type StageChange =
  | { readonly stage: 'shadow' | 'enforce' | 'retired' }
  | { readonly stage: 'percent'; readonly percent: number }

/**
 * Is shown the rule set that is to take effect and the one that is enforced, in the same step as the change is made; what it
 * throws is passed on, and nothing is changed.
 */
export type VersionApproval = (after: RuleSet, before: RuleSet) => void

/** Where to go back to, and from where. */
export interface RollbackOptions {
  /** The version to enforce; the one enforced before when left out. */
  readonly to?: number
  /** The version that was enforced as far as is known to who goes back from it. Not looked at when left out. */
  readonly ifVersion?: number
  readonly approve?: VersionApproval
}

/**
 * Immutable versions of the rule set. At most one is enforced, and at most one is a candidate (in `shadow` or `percent`).
 */
export interface VersionTable {
  /**
   * Keeps a rule set as a draft. It is checked whole: `SLUICE_INVALID_RULE_SET` lists everything that is wrong with it.
   * `basedOn`: the enforced version that the author has seen, 0 when none was. It cannot be enforced in the place of another.
   */
  create(ruleSet: RuleSet, author: Author, basedOn: number): Promise<Version>
  get(number: number): Promise<VersionContent | undefined>
  /** Newest first. */
  list(page?: PageRequest): Promise<Page<Version>>
  /** The enforced version and the candidate, where there is one. */
  current(): Promise<{ readonly enforced: Version | undefined; readonly candidate: Version | undefined }>
  /**
   * Moves a version on. `SLUICE_CONFLICT` when `ifRevision` is not its revision any more, when it is to be enforced and was
   * based on another version than the one enforced now, or when another version is the candidate already. `approve` is not asked
   * about a version that is retired.
   */
  stage(
    number: number,
    change: StageChange & Seen & { readonly approve?: VersionApproval },
    author: Author,
  ): Promise<Version>
  /**
   * Enforces the version that was enforced before, or the one named, in one step; a candidate is retired. `SLUICE_CONFLICT` when
   * `ifVersion` is not enforced any more: of two who go back from one version, the second is told.
   */
  rollback(author: Author, options?: RollbackOptions): Promise<Version>
  /**
   * Makes a version out of the enforced one and enforces it, in one step. `SLUICE_CONFLICT` when `ifVersion` is not enforced
   * any more. An empty rule set is changed when none is enforced yet (`ifVersion` 0).
   */
  edit(change: (ruleSet: RuleSet) => RuleSet, author: Author, ifVersion?: number): Promise<Version>
  /** What changes from one version to another. */
  diff(from: number, to: number): Promise<readonly RuleSetChange[]>
}
