import type { RuleSetProblem } from '@sluice/core/policy'

/** Where the active configuration came from; `none` before the first load. */
export type ConfigSource = 'database' | 'disk' | 'file' | 'none'

/** A version that this process cannot use. */
export interface RefusedVersion {
  /** 0: no version is enforced any more, which indicates data loss. */
  readonly number: number
  readonly stage: 'enforced' | 'candidate'
  /** Human-readable reason. */
  readonly reason: string
  /** Problems of its rule set. Empty if the reason is another one. */
  readonly problems: readonly RuleSetProblem[]
}

/** Status of a follower. Times are milliseconds since 1970. */
export interface ConfigStats {
  readonly source: ConfigSource
  /** Numbers of the active versions, if any. */
  readonly enforcedVersion: number | undefined
  readonly candidateVersion: number | undefined
  /** Versions that should be active and cannot be used. The previous ones stay active. */
  readonly refused: readonly RefusedVersion[]
  /** Position in the change feed. Undefined before the first load. */
  readonly position: number | undefined
  /** Successful polls of the source, with or without changes. */
  readonly refreshes: number
  /** Failed polls. */
  readonly failures: number
  /** Time of the last successful poll. Undefined before the first. */
  readonly lastRefreshAt: number | undefined
  /** When polls started to fail. Undefined while they succeed, and before the first poll has ended. */
  readonly unavailableSince: number | undefined
  /**
   * Staleness: time since the configuration was last known to be complete, minus the poll interval. 0 while polls
   * succeed. Before the first successful poll: time since the cache file was written, or since the start.
   */
  readonly lagMs: number
  /** Change notifications received. */
  readonly notifications: number
  /** Polls made because the interval had elapsed, without a notification. */
  readonly polls: number
}

/**
 * An event of a follower.
 *
 * - `refreshed`: new configuration is active. `changes`: number of entries received; `reloaded`: everything was loaded,
 *   not only changes.
 * - `refused`: a version, or a file as a whole, cannot be used. The previous configuration stays active.
 * - `unavailable`: the source became unreachable.
 * - `recovered`: the source is reachable again, after `afterMs`.
 * - `hints-lost`: notifications may have been lost. Polling continues.
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

/** Receives events. Exceptions are ignored. */
export type ConfigObserver = (event: ConfigEvent) => void

/**
 * Keeps the configuration of one process up to date in the background. It does not keep the process alive, except while
 * `ready()` waits.
 */
export interface ConfigFollower extends AsyncDisposable {
  /** Whether limits can be decided: everything was loaded at least once, and a version is enforced. */
  readonly hasRules: boolean
  /**
   * Resolves when configuration is loaded, from any source. Rejects with `SLUICE_CONFIG_UNAVAILABLE` if there is none
   * `waitMs` after the start. Retries continue, and a later call may resolve.
   */
  ready(): Promise<void>
  /** Polls now. Resolves when everything committed before the call is active here. Rejects if the poll failed. */
  refresh(): Promise<void>
  stats(): ConfigStats
  /** Stops following. The active configuration stays active. Idempotent. */
  close(): Promise<void>
}

/** Calls the observer, if there is one. */
export function tell(observe: ConfigObserver | undefined, event: ConfigEvent): void {
  try {
    observe?.(event)
  } catch {
    // A failing observer must not affect limits.
  }
}
