import type { Clock, Random, Timers } from '@sluice/core'
import { SluiceError } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import type { EntryChange, VersionsInForce } from '../config-store.ts'
import { type CacheEnd, type CacheReading, CacheWriter, type OpenCache, openCache } from './cache-file-format.ts'
import { type ConfigObserver, tell } from './config-follower.ts'
import { encodeEntry, encodeEntryKey, entryKeyOf } from './entry-encoding.ts'

/**
 * The pause after a write is this many times its duration, so that a large configuration costs no more than a small
 * one.
 */
const REST_SHARE = 20

/** With more pending changes than this, the pause is skipped. */
const MOST_CHANGES = 100_000

/** Where the last good configuration is stored. */
export interface CacheOptions {
  /** Path of the file. Missing folders are created. */
  readonly path: string
  /** Identifies the database, without secrets. A file of another source is not used. Default: none. */
  readonly source?: string
  /** Minimum pause after a write in milliseconds. Default: 5000. */
  readonly pauseMs?: number
}

/** Dependencies of {@link ConfigCache}. */
export interface CachePorts {
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly observe: ConfigObserver | undefined
}

/** The state of the file besides entries. */
export interface CacheState extends CacheEnd {
  readonly versions: VersionsInForce
}

/** A full rewrite of the file in progress. Nothing rejects: a failure is reported, and nothing is written. */
export interface CacheRewrite {
  add(changes: readonly EntryChange[]): Promise<void>
  end(end: CacheEnd): Promise<void>
  /** Cancels the rewrite. No effect after `end`. */
  cancel(): Promise<void>
}

/**
 * The last good configuration in one file, for a start without the database. Only the entries that changed since the
 * last write are in memory; they are merged into the existing file. Several processes can share a file: a process
 * leaves a file that is as new as its own state.
 */
export class ConfigCache {
  readonly #path: string
  readonly #source: string
  readonly #pauseMs: number
  readonly #ports: CachePorts
  /** Id of the file that `#changed` is merged into. Undefined if there is none. */
  #base: string | undefined
  /** By encoded key: the new line, or undefined to remove it. */
  #changed = new Map<string, string | undefined>()
  /** The state to write. Undefined if the file is up to date. */
  #noted: CacheState | undefined
  #work: Promise<void> = Promise.resolve()
  #isWriting = false
  #restUntilMs = 0
  #cancelTimer: (() => void) | undefined
  #isClosed = false

  constructor({ path, source = '', pauseMs = 5000 }: CacheOptions, ports: CachePorts) {
    this.#path = path
    this.#source = source
    this.#pauseMs = pauseMs
    this.#ports = ports
  }

  /** Whether there is no file to merge into, so that only a rewrite helps. */
  get isLost(): boolean {
    return this.#base === undefined
  }

  /** Opens the existing file. Never rejects. */
  async open(): Promise<CacheReading> {
    try {
      const reading = await openCache(this.#path)
      if (reading.state !== 'whole' || reading.cache.source === this.#source) return reading
      await reading.cache.close()
      return { state: 'refused', reason: `it is a cache of another database: "${reading.cache.source}"` }
    } catch (error) {
      return { state: 'refused', reason: `it cannot be read: ${String(error)}` }
    }
  }

  /** Starts a full rewrite. It replaces the existing file when it ends. */
  async rewrite(versions: VersionsInForce): Promise<CacheRewrite> {
    this.#stopTimer()
    await this.#work
    this.#lose()
    let writer = await this.#begin(versions)
    const attempt = async (step: (to: CacheWriter) => Promise<void>): Promise<void> => {
      try {
        if (writer !== undefined) await step(writer)
      } catch (error) {
        this.#report(error)
        await writer?.abandon().catch(() => undefined)
        writer = undefined
      }
    }
    const finish = async (to: CacheWriter, end: CacheEnd): Promise<void> => {
      this.#base = await to.commit(end)
      writer = undefined
      this.#rest(this.#pauseMs)
    }
    return {
      add: (changes) => attempt((to) => addChanges(to, changes)),
      end: (end) => attempt((to) => finish(to, end)),
      cancel: async () => {
        await writer?.abandon().catch(() => undefined)
        writer = undefined
      },
    }
  }

  /** Records changes. They are written soon, together with later ones. */
  note(changes: readonly EntryChange[], state: CacheState): void {
    if (this.#base === undefined) return
    for (const change of changes) this.#changed.set(encodeEntryKey(change), encodeEntry(change))
    this.#noted = state
    this.#schedule()
  }

  /** Writes all pending changes. Never rejects. */
  async flush(): Promise<void> {
    await this.#work
    this.#stopTimer()
    if (this.#noted !== undefined) this.#start()
    await this.#work
  }

  async close(): Promise<void> {
    await this.flush()
    this.#isClosed = true
    this.#stopTimer()
  }

  #schedule(): void {
    if (this.#isWriting || this.#isClosed || this.#noted === undefined) return
    const leftMs = this.#changed.size > MOST_CHANGES ? 0 : Math.max(0, this.#restUntilMs - this.#nowMs())
    this.#stopTimer()
    this.#cancelTimer = this.#ports.timers.schedule(leftMs, () => this.#start())
  }

  #start(): void {
    this.#cancelTimer = undefined
    this.#isWriting = true
    this.#work = this.#writeChanges().finally(() => {
      this.#isWriting = false
      this.#schedule()
    })
  }

  async #writeChanges(): Promise<void> {
    const changed = this.#changed
    const state = this.#noted!
    const startedMs = this.#nowMs()
    this.#changed = new Map()
    this.#noted = undefined
    try {
      await this.#merge(changed, state)
    } catch (error) {
      this.#report(error)
      // Changes that arrived meanwhile are newer.
      for (const [start, line] of this.#changed) changed.set(start, line)
      this.#changed = changed
      this.#noted ??= state
      if (this.#base === undefined) this.#lose()
    }
    this.#rest(Math.max(this.#pauseMs, REST_SHARE * (this.#nowMs() - startedMs)))
  }

  async #merge(changed: ReadonlyMap<string, string | undefined>, state: CacheState): Promise<void> {
    const reading = await this.open()
    if (reading.state !== 'whole') throw this.#notOurs(reading.state === 'none' ? 'it is gone' : reading.reason)
    const { cache } = reading
    try {
      if (cache.id === this.#base) this.#base = await this.#mergeInto(cache, changed, state)
      // Another process has written the file. Its content is as good as ours, unless it is older.
      else if (cache.position >= state.position) this.#base = cache.id
      else throw this.#notOurs('another process has put an older one there')
    } finally {
      await cache.close()
    }
  }

  async #mergeInto(
    cache: OpenCache,
    changed: ReadonlyMap<string, string | undefined>,
    { versions, ...end }: CacheState,
  ): Promise<string> {
    const writer = await CacheWriter.begin(this.#path, this.#nonce(), { source: this.#source, versions })
    try {
      for await (const lines of cache.lines()) {
        const kept = changed.size === 0 ? lines : lines.filter((line) => !changed.has(entryKeyOf(line)))
        if (kept.length > 0) await writer.add(`${kept.join('\n')}\n`, kept.length)
      }
      for (const line of changed.values()) if (line !== undefined) await writer.add(line, 1)
      return await writer.commit(end)
    } catch (error) {
      await writer.abandon()
      throw error
    }
  }

  async #begin(versions: VersionsInForce): Promise<CacheWriter | undefined> {
    try {
      return await CacheWriter.begin(this.#path, this.#nonce(), { source: this.#source, versions })
    } catch (error) {
      this.#report(error)
      return undefined
    }
  }

  /** Only a full rewrite helps. */
  #lose(): void {
    this.#base = undefined
    this.#noted = undefined
    this.#changed.clear()
  }

  #notOurs(reason: string): SluiceError {
    this.#base = undefined
    return new SluiceError('SLUICE_CONFLICT', {
      problem: `the configuration cache ${this.#path} cannot be updated: ${reason}`,
      action: 'Sluice rewrites it from the database automatically.',
    })
  }

  #rest(forMs: number): void {
    this.#restUntilMs = this.#nowMs() + forMs
  }

  #nonce(): string {
    const { random } = this.#ports
    return `${random.nextUint32().toString(36)}${random.nextUint32().toString(36)}`
  }

  #nowMs(): number {
    return this.#ports.clock.nowMicros() / MICROS_PER_MS
  }

  #stopTimer(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
  }

  #report(error: unknown): void {
    tell(this.#ports.observe, { type: 'cache-failed', error })
  }
}

async function addChanges(writer: CacheWriter, changes: readonly EntryChange[]): Promise<void> {
  let text = ''
  let lines = 0
  for (const change of changes) {
    const line = encodeEntry(change)
    if (line === undefined) continue
    text += line
    lines++
  }
  await writer.add(text, lines)
}
