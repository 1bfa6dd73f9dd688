import type { EntryChange, VersionsInForce } from '../change-feed.ts'

/**
 * What is kept up to date: the policy engine of this process. Every call takes effect at once, before it returns; calls come
 * one after the other.
 *
 * A reload is everything there is, in parts: `beginReload`, then `apply` for every entry that exists, then `endReload`. What
 * was there before stays in force until then, so that there is no moment without it. A reload may end in the middle when
 * the database is lost; the next one begins with `beginReload` again.
 */
export interface ConfigTarget {
  /** Bits of an IPv6 address that make one caller; only feeds that have the same are followed. Any when left out. */
  readonly ipv6PrefixLength?: number
  /**
   * What is in force from now on. Throws when it cannot be used, and then goes on with what was in force before: the reason is
   * reported, and the same versions are not offered again.
   */
  useVersions(versions: VersionsInForce): void
  /** Entries as they are now. Does not throw: one that cannot be used is the target's to report. */
  apply(changes: readonly EntryChange[]): void
  beginReload(): void
  /** The reload is complete: entries that were not applied since `beginReload` do not exist any more. */
  endReload(): void
}
