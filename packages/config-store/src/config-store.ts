import type { Block, Incident, Membership, Override } from '@sluice/core'
import type { Author, EntityKey, EntryTable, IncidentSwitch, OverrideKey, Page, PageRequest } from './entries.ts'
import type { VersionContent, VersionTable } from './versions.ts'

/**
 * Where configuration is kept. Several nodes may use one at the same time. When the database cannot be reached, every call
 * is refused with `SLUICE_CONFIG_UNAVAILABLE` and nothing was changed, except where the answer to a commit was lost.
 */
export interface ConfigStore extends AsyncDisposable {
  readonly versions: VersionTable
  readonly overrides: EntryTable<Override, OverrideKey>
  readonly members: EntryTable<Membership, EntityKey>
  readonly blocks: EntryTable<Block, EntityKey>
  readonly incident: IncidentSwitch
  readonly apiKeys: ApiKeyTable
  readonly audit: AuditLog
  readonly feed: ChangeFeed
  readonly secrets: SecretTable
  readonly numbers: NumberLeases
  readonly rollups: RollupTable
  readonly documents: DocumentTable
  /** Frees connections and files. May be called again. */
  close(): Promise<void>
}

/** What the holder of a key may do with the admin API. `none` is for keys of callers that are only limited. */
export type ApiKeyRole = 'admin' | 'editor' | 'viewer' | 'none'

/** An API key as it is kept: everything but the secret. */
export interface ApiKey {
  /** The visible part, `slk_<id>`. */
  readonly id: string
  readonly name: string
  readonly role: ApiKeyRole
  readonly tenant: string | undefined
  readonly tier: string | undefined
  /** Milliseconds since 1970, here and below. */
  readonly createdAt: number
  readonly expiresAt: number | undefined
  readonly revokedAt: number | undefined
  /** Set when the key was made by rotation: the key whose place it takes. */
  readonly rotatedFrom: string | undefined
}

/** What a new key is for. */
export interface NewApiKey {
  readonly name: string
  readonly role: ApiKeyRole
  readonly tenant?: string
  readonly tier?: string
  readonly expiresAt?: number
}

/** A key that was just made. */
export interface IssuedApiKey {
  readonly apiKey: ApiKey
  /** `slk_<id>_<secret>`: shown once, kept nowhere. */
  readonly token: string
}

/** API keys. Only a hash of each secret is kept. */
export interface ApiKeyTable {
  /**
   * Makes a key. `token`: `slk_<id>_<secret>` with 12 and 43 letters and digits, for a key that was drawn elsewhere. Default: a
   * random one. `SLUICE_CONFLICT` when there is or was a key with its id.
   */
  create(key: NewApiKey, author: Author, token?: string): Promise<IssuedApiKey>
  /** The same when there has never been a key; undefined otherwise. Of all who ask at the same time, one gets a key. */
  createFirst(key: NewApiKey, author: Author, token?: string): Promise<IssuedApiKey | undefined>
  /** The key that a token belongs to, if it is valid now. Takes the same time whether the secret is nearly right or wrong. */
  verify(token: string): Promise<ApiKey | undefined>
  /** A new key in the place of `id`, which stays valid for `overlapMs` more and then ends. */
  rotate(id: string, author: Author, overlapMs: number): Promise<IssuedApiKey>
  /**
   * Ends a key at once; false when there is no such key, or it had ended. `SLUICE_CONFLICT` for a key that may do everything
   * (`admin`, of no tenant) when no other such key lasts as long: somebody must be left to make the next one.
   */
  revoke(id: string, author: Author): Promise<boolean>
  list(page?: PageRequest): Promise<Page<ApiKey>>
}

/** Something that was done. */
export interface AuditRecord {
  /** Rises with every record. */
  readonly number: number
  /** Milliseconds since 1970. */
  readonly at: number
  readonly by: string
  /** The id of the API key it was done with; undefined for what the service did itself, and in records of older versions. */
  readonly keyId: string | undefined
  readonly note: string | undefined
  /** Such as `override.put`, `version.stage`, `api-key.revoke`. */
  readonly action: string
  /** What it was done to, such as `user:u1 /orders` or `version 12`. A value that could be misread is quoted as in JSON. */
  readonly target: string
  /** What exactly was touched, where it was not an entry of this store; without secrets. */
  readonly details: unknown
  /** The entry before and after, without secrets; undefined where there is none. */
  readonly before: unknown
  readonly after: unknown
}

/** Something that was done outside of this store. */
export interface ExternalAction extends Pick<AuditRecord, 'action' | 'target'> {
  readonly details?: unknown
}

/** What was done, newest first. Nothing is ever changed or removed in it. */
export interface AuditLog {
  /** Notes something that was done elsewhere, such as counters that were reset. Changes in this store are noted by themselves. */
  add(done: ExternalAction, author: Author): Promise<void>
  list(
    filter?: PageRequest & {
      readonly by?: string
      readonly keyId?: string
      readonly action?: string
      /** Records from then on; milliseconds since 1970. */
      readonly since?: number
    },
  ): Promise<Page<AuditRecord>>
}

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

/** Tells all nodes that something was changed, where the database cannot. */
export interface Notifier {
  /**
   * Calls `changed` soon after anybody announced. Hints may be lost, and come more than once; `lost` is called when it is known
   * that some may have been. Rejects when it cannot watch now. The function returned ends it.
   */
  watch(changed: () => void, lost: (error: unknown) => void): Promise<() => Promise<void>>
  /**
   * Tells everybody, after a change was committed. Never rejects: false says that nobody was told, and that the nodes will find
   * the change by polling.
   */
  announce(): Promise<boolean>
}

/** Secrets that all nodes have in common, such as the one that signs what is handed out. */
export interface SecretTable {
  /** 32 bytes that nobody can guess, by name: made when they are first asked for, the same for everybody ever after. */
  get(name: string): Promise<Uint8Array>
}

/** Which numbers there are, and who wants one. */
export interface NumberLeaseRequest {
  /** What the numbers are for, such as `machine`. */
  readonly name: string
  /** Numbers from 0 to one less than this. */
  readonly count: number
  /** Who wants it: unique to the process. */
  readonly holder: string
  /** How long it is kept without being renewed, in milliseconds. */
  readonly leaseMs: number
  /** The one to have when it is free, such as the one it had before. Any that is free when left out. */
  readonly wanted?: number
  /** Whether no other than `wanted` will do. */
  readonly onlyWanted?: boolean
}

/** Small numbers that no two processes have at the same time. */
export interface NumberLeases {
  /**
   * A number of its own: the one it has if it has one, else the one that is wanted, else any that is free. Undefined when all
   * are taken, or the only one that will do is. Also renews it.
   */
  take(request: NumberLeaseRequest): Promise<number | undefined>
  /** Gives it back. */
  release(request: Pick<NumberLeaseRequest, 'name' | 'holder'>): Promise<void>
}

/** What was counted in one span of time by one process. */
export interface Rollup {
  /** Length of the span in milliseconds. */
  readonly stepMs: number
  /** When the span began; milliseconds since 1970. */
  readonly at: number
  /** Names the process, and no other before or after it. */
  readonly source: string
  /** What was counted, as JSON. */
  readonly body: string
}

/** Totals of the past. Several processes may write at the same time, each its own rows. */
export interface RollupTable {
  /** Puts rows, all or none; each takes the place of one of the same span and source. Putting them again changes nothing. */
  put(rows: readonly Rollup[]): Promise<void>
  /** All rows of this length that began from `fromMs` on and before `toMs`, oldest first. */
  list(span: { readonly fromMs: number; readonly toMs: number; readonly stepMs: number }): Promise<readonly Rollup[]>
  /** Drops rows of this length that began before `beforeMs`. */
  forget(span: { readonly stepMs: number; readonly beforeMs: number }): Promise<void>
}

/** A document as it is kept. */
export interface StoredDocument {
  /** Above 0, one more with every change. */
  readonly revision: number
  readonly body: string
}

/** Small documents that several processes change together, each by what it has seen. */
export interface DocumentTable {
  get(name: string): Promise<StoredDocument | undefined>
  /**
   * Puts a document in the place of the one with `revision`, 0 where there is none yet. False when another one is there: nothing
   * was changed then.
   */
  put(name: string, body: string, revision: number): Promise<boolean>
}
