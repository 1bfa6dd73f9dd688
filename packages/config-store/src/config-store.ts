import type { Block, Incident, Membership, Override } from '@sluice/core/policy'
import type { Author, EntityKey, EntryTable, IncidentSwitch, OverrideKey, Page, PageRequest } from './config-entries.ts'
import type { VersionContent, VersionTable } from './rule-set-versions.ts'

/**
 * Stores configuration. Several nodes can share one store. If the database is unreachable, every call fails with
 * `SLUICE_CONFIG_UNAVAILABLE` and nothing has changed, unless the reply to a COMMIT was lost.
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
  /** Closes connections and files. Idempotent. */
  close(): Promise<void>
}

/** What a key may do in the admin API. Keys with role `none` only identify callers. */
export type ApiKeyRole = 'admin' | 'editor' | 'viewer' | 'none'

/** An API key without its secret. */
export interface ApiKey {
  /** The public part, `slk_<id>`. */
  readonly id: string
  readonly name: string
  readonly role: ApiKeyRole
  readonly tenant: string | undefined
  readonly tier: string | undefined
  /** Milliseconds since 1970, like the two fields below. */
  readonly createdAt: number
  readonly expiresAt: number | undefined
  readonly revokedAt: number | undefined
  /** The key that this one replaces. Undefined unless it was created by rotation. */
  readonly rotatedFrom: string | undefined
}

/** The attributes of a new key. */
export interface NewApiKey {
  readonly name: string
  readonly role: ApiKeyRole
  readonly tenant?: string
  readonly tier?: string
  readonly expiresAt?: number
}

/** A newly created key. */
export interface IssuedApiKey {
  readonly apiKey: ApiKey
  /** `slk_<id>_<secret>`. It is not stored: show it now. */
  readonly token: string
}

/** API keys. Only a hash of each secret is stored. */
export interface ApiKeyTable {
  /**
   * Creates a key. `token`: `slk_<id>_<secret>` with 12 and 43 letters and digits, to create a key with a known token.
   * Default: a random token. Fails with `SLUICE_CONFLICT` if a key with this id exists or existed.
   */
  create(key: NewApiKey, author: Author, token?: string): Promise<IssuedApiKey>
  /**
   * Creates a key if there has never been one; resolves with undefined otherwise. Only one of several concurrent calls
   * succeeds.
   */
  createFirst(key: NewApiKey, author: Author, token?: string): Promise<IssuedApiKey | undefined>
  /** The key of a token, if it is valid now. The duration does not reveal how much of the secret is correct. */
  verify(token: string): Promise<ApiKey | undefined>
  /** Creates a replacement for key `id`, which expires after another `overlapMs`. */
  rotate(id: string, author: Author, overlapMs: number): Promise<IssuedApiKey>
  /**
   * Revokes a key immediately. Resolves with false if there is no such key, or if it has expired or was revoked. Fails
   * with `SLUICE_CONFLICT` for an `admin` key without a tenant if no other such key lasts as long: one must remain to
   * create the next.
   */
  revoke(id: string, author: Author): Promise<boolean>
  list(page?: PageRequest): Promise<Page<ApiKey>>
}

/** One action in the audit log. */
export interface AuditRecord {
  /** Increases with every record. */
  readonly number: number
  /** Milliseconds since 1970. */
  readonly at: number
  readonly by: string
  /** Id of the API key that was used. Undefined for actions of the service itself, and in records of older versions. */
  readonly keyId: string | undefined
  readonly note: string | undefined
  /** For example `override.put`, `version.stage`, `api-key.revoke`. */
  readonly action: string
  /**
   * What the action applied to, for example `user:u1 /orders` or `version 12`. Ambiguous values are quoted as in JSON.
   */
  readonly target: string
  /** Details of an action outside this store, without secrets. */
  readonly details: unknown
  /** The entry before and after the action, without secrets. Undefined if there was none. */
  readonly before: unknown
  readonly after: unknown
}

/** An action outside this store, to be recorded in the audit log. */
export interface ExternalAction extends Pick<AuditRecord, 'action' | 'target'> {
  readonly details?: unknown
}

/** The audit log, newest first. It is append-only. */
export interface AuditLog {
  /**
   * Records an action outside this store, for example a reset of counters. Changes in this store are recorded
   * automatically.
   */
  add(action: ExternalAction, author: Author): Promise<void>
  list(
    filter?: PageRequest & {
      readonly by?: string
      readonly keyId?: string
      readonly action?: string
      /** Only records from this time on; milliseconds since 1970. */
      readonly since?: number
    },
  ): Promise<Page<AuditRecord>>
}

/** The active versions: the enforced one and the candidate. */
export interface VersionsInForce {
  readonly enforced: VersionContent | undefined
  readonly candidate: VersionContent | undefined
}

/**
 * The current state of one entry; `entry` is undefined if it was removed. `key` is canonical: two changes apply to the
 * same entry exactly if their keys are equal.
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

/** A batch of changes. */
export interface ChangeBatch {
  /**
   * True if `since` cannot continue from the given position: it is too old, or of another database. The batch is empty
   * then, and everything must be loaded again. Always false in the batches of `load`.
   */
  readonly restart: boolean
  /** Pass it to the next `since`. */
  readonly position: number
  /** Undefined if the active versions have not changed. */
  readonly versions: VersionsInForce | undefined
  readonly changes: readonly EntryChange[]
  /** Whether further changes are available now. */
  readonly more: boolean
}

/**
 * All configuration that nodes need, in commit order. Positions increase with every commit: a reader at one position
 * has seen everything before it.
 */
export interface ChangeFeed {
  /**
   * Leading bits of an IPv6 address that identify a caller. A follower whose target uses another length fails. Default:
   * not checked.
   */
  readonly ipv6PrefixLength?: number
  /** The position of the newest change. Cheap. */
  head(): Promise<number>
  /**
   * The current state in batches: first the active versions, then all entries. `since` continues without a gap from the
   * position of the last batch; it may repeat entries that changed during the load.
   */
  load(): AsyncIterable<ChangeBatch>
  /** The changes after `position`, at most a few thousand. Does not wait for new ones. */
  since(position: number): Promise<ChangeBatch>
  /**
   * Calls `changed` soon after a change by any node. Notifications can be lost or repeated; `lost` is called if some
   * may have been lost. Call the returned function to stop.
   */
  watch(changed: () => void, lost: (error: unknown) => void): Promise<() => Promise<void>>
}

/** Notifies all nodes of changes, for databases that cannot. */
export interface Notifier {
  /**
   * Calls `changed` soon after an announcement by any node. Notifications can be lost or repeated; `lost` is called if
   * some may have been lost. Rejects if watching is not possible now. Call the returned function to stop.
   */
  watch(changed: () => void, lost: (error: unknown) => void): Promise<() => Promise<void>>
  /**
   * Notifies all nodes that a change was committed. Never rejects; false means that no node was notified and that they
   * will find the change by polling.
   */
  announce(): Promise<boolean>
}

/** Secrets that all nodes share, for example to sign reservation ids. */
export interface SecretTable {
  /** 32 random bytes by name. The first call creates them; all later calls of all nodes return the same bytes. */
  get(name: string): Promise<Uint8Array>
}

/** A request for a number. */
export interface NumberLeaseRequest {
  /** The purpose of the numbers, for example `machine`. */
  readonly name: string
  /** Numbers range from 0 to `count - 1`. */
  readonly count: number
  /** Identifies the process. Unique. */
  readonly holder: string
  /** Duration of the lease in milliseconds, unless renewed. */
  readonly leaseMs: number
  /** The preferred number, for example the previous one. Default: any free number. */
  readonly wanted?: number
  /** Whether to accept no other number than `wanted`. Default: false. */
  readonly onlyWanted?: boolean
}

/** Leases small numbers, each to one process at a time. */
export interface NumberLeases {
  /**
   * Leases a number or renews the lease: the holder's current number, else the wanted one, else any free number.
   * Resolves with undefined if none is free, or if the only acceptable one is taken.
   */
  take(request: NumberLeaseRequest): Promise<number | undefined>
  /** Ends the lease. */
  release(request: Pick<NumberLeaseRequest, 'name' | 'holder'>): Promise<void>
}

/** The totals of one process for one time span. */
export interface Rollup {
  /** Length of the span in milliseconds. */
  readonly stepMs: number
  /** Start of the span; milliseconds since 1970. */
  readonly at: number
  /** Identifies the process. Never reused. */
  readonly source: string
  /** The totals, as JSON. */
  readonly body: string
}

/** Historical totals. Several processes can write at the same time, each its own rows. */
export interface RollupTable {
  /** Puts rows atomically. A row replaces the one with the same span and source. Idempotent. */
  put(rows: readonly Rollup[]): Promise<void>
  /** All rows with this step that start in [fromMs, toMs), oldest first. */
  list(span: { readonly fromMs: number; readonly toMs: number; readonly stepMs: number }): Promise<readonly Rollup[]>
  /** Deletes rows with this step that start before `beforeMs`. */
  forget(span: { readonly stepMs: number; readonly beforeMs: number }): Promise<void>
}

/** A document and its revision. */
export interface StoredDocument {
  /** Above 0; incremented by every change. */
  readonly revision: number
  readonly body: string
}

/** Small documents that several processes update with optimistic locking. */
export interface DocumentTable {
  get(name: string): Promise<StoredDocument | undefined>
  /**
   * Replaces the document with `revision`; 0 creates it. Resolves with false, without a change, if the revision is
   * another one.
   */
  put(name: string, body: string, revision: number): Promise<boolean>
}
