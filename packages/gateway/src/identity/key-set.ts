import { hash } from 'node:crypto'
import type { Clock } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import { backoffDelayMs, type Random } from '@sluice/runtime'
import { type CryptoKey, createLocalJWKSet, type JSONWebKeySet, type JWSHeaderParameters, type LocalJWKSet } from 'jose'

/** What a {@link KeySet} works with. */
export interface KeySetParts {
  /** Reads the key set as text. Rejects if it cannot be read in time. */
  readonly read: () => Promise<string>
  readonly clock: Clock
  readonly random: Random
  /** Called after each attempt to load: with the error, or undefined. Default: nothing. */
  readonly onLoad?: (error: Error | undefined) => void
}

/** How a key set stands. */
export interface KeySetStats {
  readonly keys: number
  /** When it was last loaded, in milliseconds since 1970; undefined if never. */
  readonly loadedAtMs: number | undefined
  /** Failed attempts since it was last loaded. */
  readonly failures: number
  /** Message of the last failure; undefined after a success. */
  readonly problem: string | undefined
}

/** No key set was loaded yet: nothing can be verified, and nothing is known to be wrong. */
export class KeySetUnavailable extends Error {
  override readonly name = 'KeySetUnavailable'
  readonly retryAfterMs: number

  constructor(retryAfterMs: number) {
    super('no key set was loaded yet')
    this.retryAfterMs = retryAfterMs
  }
}

/** After this long, keys are loaded again; those that are there stay in use meanwhile. */
const FRESH_MS = 10 * 60_000

/** An unknown key id loads the set again at most this often, so that made-up ids cause no load on the issuer. */
const RELOAD_EVERY_MS = 30_000

const BACKOFF = { baseMs: 1000, capMs: 5 * 60_000 }

/** Of tokens without key id: keys that are tried, at most. */
const MOST_CANDIDATES = 8

/**
 * The public keys of an issuer. Keys stay in use until others were loaded, however long the issuer is unavailable.
 * Loads are joined, spaced by {@link RELOAD_EVERY_MS}, and after failures by an exponential backoff. It needs no timer:
 * keys are loaded when they are used.
 */
export class KeySet {
  readonly #parts: KeySetParts
  #keys: LocalJWKSet | undefined
  #size = 0
  #digest = ''
  #revision = 0
  #loadedAtMs: number | undefined
  #nextLoadMs = 0
  #failures = 0
  #problem: string | undefined
  #loading: Promise<void> | undefined

  constructor(parts: KeySetParts) {
    this.#parts = parts
  }

  /** Changes when other keys were loaded: what was verified with keys of before is to be verified again. */
  get revision(): number {
    return this.#revision
  }

  stats(): KeySetStats {
    const [keys, loadedAtMs, failures, problem] = [this.#size, this.#loadedAtMs, this.#failures, this.#problem]
    return { keys, loadedAtMs, failures, problem }
  }

  /** Loads the keys again if they are not fresh and it is time. Never rejects. */
  refresh(): Promise<void> {
    if (this.#loading !== undefined) return this.#loading
    const nowMs = this.#nowMs()
    const isFresh = this.#loadedAtMs !== undefined && nowMs - this.#loadedAtMs < FRESH_MS
    return isFresh || nowMs < this.#nextLoadMs ? Promise.resolve() : this.#load()
  }

  /**
   * Keys that may have signed a token with this header, one at least. Rejects with {@link KeySetUnavailable}, or with
   * an error of jose if there is none.
   */
  async find(header: JWSHeaderParameters): Promise<readonly CryptoKey[]> {
    const refreshed = this.refresh()
    if (this.#keys === undefined) await refreshed
    if (this.#keys === undefined) throw new KeySetUnavailable(Math.max(0, this.#nextLoadMs - this.#nowMs()))
    try {
      return await candidates(this.#keys, header)
    } catch (error) {
      const isUnknown = (error as { code?: string }).code === 'ERR_JWKS_NO_MATCHING_KEY'
      if (!isUnknown || (this.#loading === undefined && this.#nowMs() < this.#nextLoadMs)) throw error
      const { revision } = this
      await (this.#loading ?? this.#load())
      if (revision === this.revision) throw error
      return await candidates(this.#keys, header)
    }
  }

  #load(): Promise<void> {
    this.#loading = this.#tryLoad().finally(() => {
      this.#loading = undefined
    })
    return this.#loading
  }

  async #tryLoad(): Promise<void> {
    const { read, random, onLoad } = this.#parts
    try {
      this.#use(await read())
      this.#failures = 0
      this.#problem = undefined
      this.#loadedAtMs = this.#nowMs()
      this.#nextLoadMs = this.#loadedAtMs + RELOAD_EVERY_MS
      onLoad?.(undefined)
    } catch (error) {
      const failure = error instanceof Error ? error : new Error(String(error))
      this.#nextLoadMs = this.#nowMs() + backoffDelayMs(this.#failures++, random, BACKOFF)
      this.#problem = failure.message
      onLoad?.(failure)
    }
  }

  #use(text: string): void {
    const digest = hash('sha256', text)
    if (digest === this.#digest) return
    const document = JSON.parse(text) as JSONWebKeySet
    const keys = createLocalJWKSet(document)
    // An empty set would end every session. It is far more likely to be a fault of the issuer than its will.
    if (document.keys.length === 0) throw new Error('the key set has no keys')
    this.#keys = keys
    this.#size = document.keys.length
    this.#digest = digest
    this.#revision++
  }

  #nowMs(): number {
    return this.#parts.clock.nowMicros() / MICROS_PER_MS
  }
}

/** A token without key id may have been signed by several keys. */
async function candidates(keys: LocalJWKSet, header: JWSHeaderParameters): Promise<readonly CryptoKey[]> {
  try {
    return [await keys(header)]
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_JWKS_MULTIPLE_MATCHING_KEYS') throw error
    const found: CryptoKey[] = []
    for await (const key of error as unknown as AsyncIterable<CryptoKey>) {
      found.push(key)
      if (found.length === MOST_CANDIDATES) break
    }
    return found
  }
}
