import type { ApiKey, ConfigTarget, EntryChange } from '@sluice/config-store'

/** A key as the change feed brings it. */
export interface KnownApiKey extends ApiKey {
  /** SHA-256 of its secret, in hexadecimal digits. */
  readonly secretHash: string
}

/**
 * The API keys as last read, kept up to date by the change feed: `engineTarget(engine, { others: keys })`. So no
 * request waits for the database, a key that is revoked on any node stops working with the next change, and keys keep
 * working while the database is unreachable.
 */
export class ApiKeyCache implements Pick<ConfigTarget, 'apply' | 'beginReload' | 'endReload'> {
  #keys = new Map<string, KnownApiKey>()
  /** What came since a reload began; undefined when none is under way. */
  #reloaded: Map<string, KnownApiKey> | undefined
  #isLoaded = false

  /** Whether all keys are known: false until something was loaded, from wherever. */
  get isLoaded(): boolean {
    return this.#isLoaded
  }

  get size(): number {
    return this.#keys.size
  }

  /** The key with this id, whether or not it has ended. */
  find(id: string): KnownApiKey | undefined {
    return this.#keys.get(id)
  }

  apply(changes: readonly EntryChange[]): void {
    for (const change of changes) {
      if (change.kind !== 'api-key') continue
      put(this.#keys, change.key, change.entry)
      if (this.#reloaded !== undefined) put(this.#reloaded, change.key, change.entry)
    }
  }

  beginReload(): void {
    this.#reloaded = new Map()
  }

  endReload(): void {
    if (this.#reloaded !== undefined) this.#keys = this.#reloaded
    this.#reloaded = undefined
    this.#isLoaded = true
  }
}

function put(keys: Map<string, KnownApiKey>, id: string, key: KnownApiKey | undefined): void {
  if (key === undefined) keys.delete(id)
  else keys.set(id, key)
}
