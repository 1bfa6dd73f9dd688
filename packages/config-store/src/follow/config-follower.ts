import type { RuleSetProblem } from '@sluice/core'

/** Where the configuration in force came from; `none` before anything is loaded. */
export type ConfigSource = 'database' | 'disk' | 'file' | 'none'

/** A version that this process does not use. */
export interface RefusedVersion {
  /** 0: no version is enforced any more, which only a loss of data can cause. */
  readonly number: number
  readonly stage: 'enforced' | 'candidate'
  /** In words. */
  readonly reason: string
  /** All that is wrong with its rule set; empty when the reason is another one. */
  readonly problems: readonly RuleSetProblem[]
}

/** How up to date a process is. Instants are milliseconds since 1970. */
export interface ConfigStats {
  readonly source: ConfigSource
  /** Numbers of the versions in force here; undefined where there is none. */
  readonly enforcedVersion: number | undefined
  readonly candidateVersion: number | undefined
  /** Versions that should be in force and cannot be used; what was in force before them stays. */
  readonly refused: readonly RefusedVersion[]
  /** How far the change feed was followed; undefined when everything has to be loaded. */
  readonly position: number | undefined
  /** Looks at the source that succeeded, whether something had changed or not. */
  readonly refreshes: number
  /** Looks that failed. */
  readonly failures: number
  /** The last look that succeeded; undefined before the first. */
  readonly lastRefreshAt: number | undefined
  /** Since when looks fail; undefined while they succeed, and before the first has ended. */
  readonly unavailableSince: number | undefined
  /**
   * How long ago this process was last known to have all there is, less the poll interval: 0 while looks succeed as planned, and
   * growing from then on. Before the first look that succeeded: since the cache file was written, or since the start.
   */
  readonly lagMs: number
  /** Hints that something was changed. */
  readonly notifications: number
  /** Looks made without a hint, because it was time. */
  readonly polls: number
}

/**
 * Something that happened while configuration was followed.
 *
 * - `refreshed`: something else is in force now. `changes`: so many entries came; `reloaded`: all of them, not only what changed.
 * - `refused`: a version, or a file as a whole, cannot be used; what was in force stays.
 * - `unavailable`: the source cannot be reached, for the first time since it could.
 * - `recovered`: it could be reached again, after so long.
 * - `hints-lost`: notifications may be missing; polling goes on.
 * - `cache-failed`: the cache file could not be written.
 * - `cache-refused`: the cache file cannot be used.
 */
export type ConfigEvent =
  | {
      readonly type: 'refreshed'
      readonly source: ConfigSource
      readonly enforcedVersion: number | undefined
      readonly candidateVersion: number | undefined
      readonly changes: number
      readonly reloaded: boolean
    }
  | { readonly type: 'refused'; readonly version: number | undefined; readonly error: unknown }
  | { readonly type: 'unavailable'; readonly error: unknown }
  | { readonly type: 'recovered'; readonly afterMs: number }
  | { readonly type: 'hints-lost'; readonly error: unknown }
  | { readonly type: 'cache-failed'; readonly error: unknown }
  | { readonly type: 'cache-refused'; readonly reason: string }

/** Is told of events as they happen. What it throws is ignored. */
export type ConfigObserver = (event: ConfigEvent) => void

/** Keeps one process up to date, in the background: it does not keep the process alive, but `ready()` does while it waits. */
export interface ConfigFollower extends AsyncDisposable {
  /** Whether limits can be decided: everything there is was loaded at least once, and a version is enforced. */
  readonly hasRules: boolean
  /**
   * Resolves when something is loaded, wherever from. Rejects with `SLUICE_CONFIG_UNAVAILABLE` when nothing is after `waitMs`
   * from the start; it goes on trying, and a later call may resolve.
   */
  ready(): Promise<void>
  /** Looks now. Resolves when all that was committed before the call is in force here; rejects when the look failed. */
  refresh(): Promise<void>
  stats(): ConfigStats
  /** Ends it; what is in force stays. May be called again. */
  close(): Promise<void>
}

/** Tells an observer, if there is one. */
export function tell(observe: ConfigObserver | undefined, event: ConfigEvent): void {
  try {
    observe?.(event)
  } catch {
    // Limits must not depend on somebody who counts.
  }
}
