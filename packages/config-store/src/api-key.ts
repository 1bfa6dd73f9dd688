import type { Author } from './author.ts'
import type { Page, PageRequest } from './page.ts'

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
