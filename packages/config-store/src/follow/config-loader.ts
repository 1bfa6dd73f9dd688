import type { Clock } from '@sluice/core'
import { SluiceError } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import type { ChangeBatch, ChangeFeed, EntryChange, VersionsInForce } from '../config-store.ts'
import { ActiveVersions, NO_VERSIONS } from './active-versions.ts'
import type { OpenCache } from './cache-file-format.ts'
import type { CacheRewrite, ConfigCache } from './config-cache.ts'
import { type ConfigObserver, type ConfigSource, tell } from './config-follower.ts'
import type { ConfigTarget } from './config-target.ts'
import { decodeEntry } from './entry-encoding.ts'

/** Minimum interval between rewrites of a lost cache file: a rewrite loads everything. */
const CACHE_REWRITE_MS = 600_000

/** Options of {@link ConfigLoader}. */
export interface ConfigLoaderOptions {
  readonly target: ConfigTarget
  readonly cache: ConfigCache | undefined
  readonly clock: Clock
  readonly observe: ConfigObserver | undefined
}

/** Loads configuration from a change feed or from disk, and passes it to the target and to the cache. */
export class ConfigLoader {
  readonly versions: ActiveVersions
  readonly #options: ConfigLoaderOptions
  #source: ConfigSource = 'none'
  #position: number | undefined
  #currentAtMs: number | undefined
  #loadedAtMs = Number.NEGATIVE_INFINITY
  #reading: Promise<void> | undefined
  #isLoading = false
  #isStopped = false

  constructor(options: ConfigLoaderOptions) {
    this.#options = options
    this.versions = new ActiveVersions(options.target, options.observe)
  }

  get source(): ConfigSource {
    return this.#source
  }

  /** Position in the feed. Undefined before everything is loaded. */
  get position(): number | undefined {
    return this.#position
  }

  /** When the loaded configuration was known to be complete; milliseconds since 1970. */
  get currentAtMs(): number | undefined {
    return this.#currentAtMs
  }

  /** Whether limits can be decided with what is loaded. */
  get isLoaded(): boolean {
    return this.#source !== 'none' && !this.versions.isMissing
  }

  /** Loads everything that is available. Rejects if the feed does; what was applied until then stays. */
  async update(feed: ChangeFeed): Promise<void> {
    const taken = { changes: 0, reloads: 0, hasVersions: false }
    if (this.#position === undefined || this.#mustRewriteCache()) taken.changes += await this.#reload(feed, taken)
    for (let more = true; more && !this.#isStopped; ) {
      const askedAtMs = this.#nowMs()
      const batch = await feed.since(this.#position!)
      if (this.#isStopped) return
      // A database that was restored from a backup has lost changes that were applied here.
      if (batch.restart || batch.position < this.#position!) {
        taken.changes += await this.#reload(feed, taken)
        continue
      }
      more = batch.more
      this.#takeBatch(batch)
      taken.changes += batch.changes.length
      taken.hasVersions ||= batch.versions !== undefined
      if (!more) this.#currentAtMs = askedAtMs
    }
    if (taken.changes > 0 || taken.reloads > 0 || taken.hasVersions)
      this.#tellRefreshed(taken.changes, taken.reloads > 0)
  }

  /** Loads the cache file, if nothing is loaded or being loaded. Never rejects. */
  loadFromDisk(): Promise<void> {
    const { cache } = this.#options
    if (cache === undefined || this.#source !== 'none' || this.#isLoading || this.#isStopped) return Promise.resolve()
    this.#reading ??= this.#readCache().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  /** Applies nothing further. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#reading
  }

  #takeBatch({ position, versions, changes }: ChangeBatch): void {
    const { target, cache } = this.#options
    if (changes.length > 0) target.apply(changes)
    if (versions !== undefined) this.versions.activate(versions)
    const hasMoved = position !== this.#position
    this.#position = position
    if (!hasMoved) return
    cache?.note(changes, { versions: this.versions.current, position, currentAt: this.#nowMs() })
  }

  async #reload(feed: ChangeFeed, taken: { reloads: number }): Promise<number> {
    if (++taken.reloads > 2) {
      throw new SluiceError('SLUICE_PROTOCOL', {
        problem: 'the change feed repeatedly asks for a full reload',
        action: 'Check whether the configuration database is being replaced.',
      })
    }
    const load = { rewrite: undefined as CacheRewrite | undefined, changes: 0 }
    try {
      await this.#load(feed, load)
      return load.changes
    } finally {
      this.#isLoading = false
      await load.rewrite?.cancel()
    }
  }

  async #load(feed: ChangeFeed, load: { rewrite: CacheRewrite | undefined; changes: number }): Promise<void> {
    const { target } = this.#options
    const beganAtMs = this.#nowMs()
    let position: number | undefined
    for await (const batch of feed.load()) {
      if (position === undefined) {
        // One load at a time: the cache file is older.
        await this.#reading
        this.#isLoading = true
        load.rewrite = await this.#begin(batch.versions ?? NO_VERSIONS)
      }
      if (this.#isStopped) return
      target.apply(batch.changes)
      await load.rewrite?.add(batch.changes)
      load.changes += batch.changes.length
      position = batch.position
    }
    if (this.#isStopped || position === undefined) return
    target.endReload()
    this.#source = 'database'
    this.#position = position
    this.#currentAtMs = beganAtMs
    this.#loadedAtMs = this.#nowMs()
    await load.rewrite?.end({ position, currentAt: beganAtMs })
  }

  async #begin(versions: VersionsInForce): Promise<CacheRewrite | undefined> {
    const { cache, target } = this.#options
    this.versions.activate(versions)
    if (this.versions.isMissing) await this.#useVersionsOnDisk()
    target.beginReload()
    // Without an enforced version, the existing file may be more useful than a new one.
    return this.versions.isMissing ? undefined : await cache?.rewrite(this.versions.current)
  }

  #mustRewriteCache(): boolean {
    const { cache } = this.#options
    return cache?.isLost === true && !this.versions.isMissing && this.#nowMs() - this.#loadedAtMs >= CACHE_REWRITE_MS
  }

  async #useVersionsOnDisk(): Promise<void> {
    const cache = await this.#openCache()
    if (cache === undefined) return
    await cache.close()
    this.versions.fallBack(cache.versions)
  }

  async #readCache(): Promise<void> {
    const cache = await this.#openCache()
    if (cache === undefined) return
    try {
      await this.#useCache(cache)
    } catch (error) {
      tell(this.#options.observe, { type: 'cache-refused', reason: `it cannot be read: ${String(error)}` })
    } finally {
      await cache.close()
    }
  }

  async #useCache(cache: OpenCache): Promise<void> {
    const { target } = this.#options
    if (this.#isStopped) return
    if (this.versions.activate(cache.versions) !== undefined) return
    let changes = 0
    target.beginReload()
    for await (const lines of cache.lines()) {
      if (this.#isStopped) return
      const read = lines.map(decodeEntry).filter((change): change is EntryChange => change !== undefined)
      target.apply(read)
      changes += read.length
    }
    target.endReload()
    this.#source = 'disk'
    this.#currentAtMs = cache.currentAt
    this.#tellRefreshed(changes, true)
  }

  async #openCache(): Promise<OpenCache | undefined> {
    const reading = await this.#options.cache?.open()
    if (reading?.state === 'refused') tell(this.#options.observe, { type: 'cache-refused', reason: reading.reason })
    return reading?.state === 'whole' ? reading.cache : undefined
  }

  #tellRefreshed(changes: number, reloaded: boolean): void {
    const { enforced, candidate } = this.versions.current
    tell(this.#options.observe, {
      type: 'refreshed',
      source: this.#source,
      enforcedVersion: enforced?.number,
      candidateVersion: candidate?.number,
      changes,
      reloaded,
    })
  }

  #nowMs(): number {
    return this.#options.clock.nowMicros() / MICROS_PER_MS
  }
}
