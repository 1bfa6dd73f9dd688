import type { Block, Incident, Membership, Override } from '@sluice/core'
import type { ApiKey } from './api-key.ts'
import type { EntityKey, OverrideKey } from './entries.ts'
import type { VersionContent } from './versions.ts'

/** What is in force: the enforced version and the candidate. */
export interface VersionsInForce {
  readonly enforced: VersionContent | undefined
  readonly candidate: VersionContent | undefined
}

/**
 * One entry as it is now; `entry` is undefined when it was removed. `key` is spelled in one way whatever the spelling of the entry,
 * so that it says whether two changes are of the same entry.
 */
export type EntryChange =
  | { readonly kind: 'override'; readonly key: OverrideKey; readonly entry: Override | undefined }
  | { readonly kind: 'member'; readonly key: EntityKey; readonly entry: Membership | undefined }
  | { readonly kind: 'block'; readonly key: EntityKey; readonly entry: Block | undefined }
  | { readonly kind: 'incident'; readonly entry: Incident }
  | {
      readonly kind: 'api-key'
      readonly key: string
      readonly entry: (ApiKey & { readonly secretHash: string }) | undefined
    }

/** Part of what changed. */
export interface ChangeBatch {
  /**
   * Set when `since` was asked for a position it cannot go on from: too long ago, or of another database. The batch is empty
   * then, and everything has to be loaded again. False in the parts of `load`.
   */
  readonly restart: boolean
  /** How far this batch leads: ask on from here. */
  readonly position: number
  /** Set when which versions are in force has changed. */
  readonly versions: VersionsInForce | undefined
  readonly changes: readonly EntryChange[]
  /** Whether more is there already. */
  readonly more: boolean
}

/**
 * All that nodes need to know, in the order it was committed. Positions rise by commit: whoever has read up to one has missed
 * nothing before it.
 */
export interface ChangeFeed {
  /** Bits of an IPv6 address that make one caller; anything when left out. Targets that count by others are not kept up to date. */
  readonly ipv6PrefixLength?: number
  /** The position of the newest change; cheap. */
  head(): Promise<number>
  /**
   * What is there as of now, in parts: first what is in force, then all entries. The position of the last part is one from
   * which `since` goes on without a gap; entries changed while it was read may come again there.
   */
  load(): AsyncIterable<ChangeBatch>
  /** What changed after `position`; waits for nothing. At most some thousand changes at once. */
  since(position: number): Promise<ChangeBatch>
  /**
   * Calls back soon after something was changed by anybody. Hints may be lost, and come more than once; `lost` is called when
   * it is known that some may have been. The function returned ends it.
   */
  watch(changed: () => void, lost: (error: unknown) => void): Promise<() => Promise<void>>
}
