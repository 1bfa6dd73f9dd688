import { createHash } from 'node:crypto'
import { basename, dirname, resolve } from 'node:path'
import { type Clock, type FileContent, type Random, systemClock, systemRandom, type Timers } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import type { EntryChange } from '../config-store.ts'
import { ActiveVersions } from '../follow/active-versions.ts'
import { type ConfigFollower, type ConfigObserver, type ConfigStats, tell } from '../follow/config-follower.ts'
import type { ConfigTarget } from '../follow/config-target.ts'
import { encodeEntry, encodeEntryKey } from '../follow/entry-encoding.ts'
import { HintSources } from '../follow/hint-sources.ts'
import { checkPollMs, Poller, type PollResult } from '../follow/poller.ts'
import { platform } from '../platform.ts'
import type { VersionContent } from '../versions.ts'
import { parseConfigFile } from './parse-config-file.ts'
import { FolderHints, WatchedFile } from './watched-file.ts'

/** How {@link fileConfig} follows a file. */
export interface FileConfigOptions {
  readonly target: ConfigTarget
  /** Names of the cost functions that rules may use; any name when left out. */
  readonly costFunctions?: readonly string[]
  /** Longest time until a change is noticed when the system does not tell of it, above 0; 5 s when left out. */
  readonly pollMs?: number
  /** How long a changed file must stay as it is before it is read: whoever writes it may not be done. 100 ms when left out. */
  readonly settleMs?: number
  readonly observe?: ConfigObserver
  /**
   * Is told what stands under `service` in the file, unchecked, whenever it is read and its rules have no problems; undefined when
   * there is nothing. What it throws is ignored.
   */
  readonly onService?: (service: FileContent['service']) => void
  readonly clock?: Clock
  readonly timers?: Timers
  readonly random?: Random
}

/** How up to date a process is with its file. */
export interface FileConfigStats extends ConfigStats {
  /** SHA-256, in hexadecimal, of the content in force; undefined before the first. */
  readonly contentHash: string | undefined
}

/** Follows a file. Its versions are counted from 1, one for each content that took the place of another. */
export interface FileConfig extends ConfigFollower {
  /** Resolves when the file is in force. Rejects at once with what is wrong with it; it is looked at again by itself. */
  ready(): Promise<void>
  /** Reads the file now. Rejects with what is wrong with it. */
  refresh(): Promise<void>
  stats(): FileConfigStats
}

/**
 * Keeps a target up to date with a file, `sluice.yaml` or JSON, as an alternative to a database. A change of the file takes
 * effect by itself, as a whole. A file that has problems, or is gone, leaves in force what was, and is reported. Begins at once.
 */
export function fileConfig(path: string, options: FileConfigOptions): FileConfig {
  checkPollMs(options.pollMs)
  return new FileFollower(resolve(path), options)
}

class FileFollower implements FileConfig {
  readonly #name: string
  readonly #options: FileConfigOptions
  readonly #clock: Clock
  readonly #pollMs: number
  readonly #startedAtMs: number
  readonly #file: WatchedFile
  readonly #folder: FolderHints
  readonly #versions: ActiveVersions
  readonly #entries = new FileEntries()
  readonly #poller: Poller
  readonly #hints: HintSources
  readonly #first: Promise<void>
  #number = 0
  /** Of the content in force, and of the one that was read last. */
  #contentHash: string | undefined
  #readHash: string | undefined
  /** What stands under `service` in the content in force. */
  #service: FileContent['service']
  /** What is wrong with what was read last. */
  #problem: unknown
  /** Whether the content must be looked at, however the file looks from outside. */
  #mustRead = true
  #refreshes = 0
  #failures = 0
  #notifications = 0
  #currentAtMs: number | undefined
  #awaySinceMs: number | undefined
  #closing: Promise<void> | undefined

  constructor(path: string, options: FileConfigOptions) {
    const { clock = systemClock, random = systemRandom, pollMs = 5000, settleMs = 100, observe, target } = options
    const timers = options.timers ?? platform.backgroundTimers
    this.#name = basename(path)
    this.#options = options
    this.#clock = clock
    this.#pollMs = pollMs
    this.#startedAtMs = this.#nowMs()
    // Whoever awaits a look must not depend on a timer that does not keep the process alive.
    this.#file = new WatchedFile({ path, settleMs, timers: options.timers ?? platform.timers })
    this.#folder = new FolderHints(dirname(path))
    this.#versions = new ActiveVersions(target, observe)
    this.#poller = new Poller({ poll: () => this.#poll(), pollMs, clock, timers, random })
    this.#hints = new HintSources({
      changed: () => {
        this.#notifications++
        this.#hint()
      },
      begun: () => this.#hint(),
      lost: (error) => {
        tell(observe, { type: 'hints-lost', error })
        this.#hint()
      },
    })
    this.#first = this.#poller.now()
    this.#first.catch(() => undefined)
  }

  get hasRules(): boolean {
    return this.#number > 0
  }

  async ready(): Promise<void> {
    if (this.#number === 0) await this.#first.catch(() => undefined)
    if (this.#number === 0) await this.refresh()
  }

  refresh(): Promise<void> {
    this.#mustRead = true
    return this.#poller.now()
  }

  stats(): FileConfigStats {
    const { enforced, candidate } = this.#versions.current
    return {
      source: this.#number > 0 ? 'file' : 'none',
      enforcedVersion: enforced?.number,
      candidateVersion: candidate?.number,
      refused: this.#versions.refused,
      position: this.#number > 0 ? this.#number : undefined,
      refreshes: this.#refreshes,
      failures: this.#failures,
      lastRefreshAt: this.#currentAtMs,
      unavailableSince: this.#awaySinceMs,
      lagMs: Math.max(0, this.#nowMs() - (this.#currentAtMs ?? this.#startedAtMs) - this.#pollMs),
      notifications: this.#notifications,
      polls: this.#poller.polls,
      contentHash: this.#contentHash,
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#finish()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #finish(): Promise<void> {
    this.#file.stop()
    await Promise.all([this.#poller.close(), this.#hints.close()])
  }

  #hint(): void {
    this.#mustRead = true
    this.#poller.hint()
  }

  async #poll(): Promise<PollResult> {
    const beganAtMs = this.#nowMs()
    const mustRead = this.#mustRead
    this.#mustRead = false
    this.#hints.watch(this.#folder)
    try {
      await this.#folder.check()
      const content = await this.#file.read(mustRead)
      if (this.#closing !== undefined) return { isDone: true, error: undefined }
      this.#found(beganAtMs)
      if (content !== undefined) this.#take(content)
      return { isDone: true, error: this.#problem }
    } catch (error) {
      if (this.#closing === undefined) this.#missed(error)
      return { isDone: false, error }
    }
  }

  #take(content: Uint8Array): void {
    const hash = createHash('sha256').update(content).digest('hex')
    if (hash === this.#readHash) return
    this.#readHash = hash
    this.#problem = undefined
    // Somebody has put back what is in force.
    if (hash === this.#contentHash) {
      this.#versions.confirm()
      this.#tellService(this.#service)
    } else this.#use(content, hash)
  }

  #use(content: Uint8Array, hash: string): void {
    const { costFunctions } = this.#options
    const number = this.#number + 1
    let parsed: FileContent
    try {
      parsed = parseConfigFile(content, this.#name, costFunctions === undefined ? {} : { costFunctions })
    } catch (error) {
      this.#problem = error
      this.#versions.refuse(number, error)
      return
    }
    this.#tellService(parsed.service)
    this.#problem = this.#versions.activate({ enforced: this.#versionOf(number, parsed), candidate: undefined })
    if (this.#problem !== undefined) return
    this.#number = number
    this.#contentHash = hash
    this.#service = parsed.service
    const changes = this.#entries.replace(parsed)
    if (changes.length > 0) this.#options.target.apply(changes)
    tell(this.#options.observe, {
      type: 'refreshed',
      source: 'file',
      enforcedVersion: number,
      candidateVersion: undefined,
      changes: changes.length,
      reloaded: false,
    })
  }

  #tellService(service: FileContent['service']): void {
    try {
      this.#options.onService?.(service)
    } catch {
      // Limits must not depend on somebody who listens.
    }
  }

  #versionOf(number: number, { ruleSet }: FileContent): VersionContent {
    return {
      number,
      stage: 'enforce',
      percent: 0,
      basedOn: number === 1 ? undefined : number - 1,
      createdAt: Math.floor(this.#nowMs()),
      createdBy: this.#name,
      note: undefined,
      revision: 1,
      ruleSet,
    }
  }

  #found(beganAtMs: number): void {
    this.#refreshes++
    this.#currentAtMs = beganAtMs
    if (this.#awaySinceMs !== undefined) {
      tell(this.#options.observe, { type: 'recovered', afterMs: this.#nowMs() - this.#awaySinceMs })
    }
    this.#awaySinceMs = undefined
  }

  #missed(error: unknown): void {
    this.#failures++
    this.#mustRead = true
    if (this.#awaySinceMs === undefined) tell(this.#options.observe, { type: 'unavailable', error })
    this.#awaySinceMs ??= this.#nowMs()
  }

  #nowMs(): number {
    return this.#clock.nowMicros() / MICROS_PER_MS
  }
}

/** The overrides and memberships of a file, and what changes when another content takes its place. */
class FileEntries {
  /** By key. */
  #entries = new Map<string, EntryChange>()

  /** Takes the place of what was there; gives back what is another one now, and what is gone. */
  replace({ overrides, members }: FileContent): readonly EntryChange[] {
    const entries = new Map<string, EntryChange>()
    for (const entry of overrides) {
      const { dimension, entity, resource } = entry
      const change: EntryChange = { kind: 'override', key: { dimension, entity, resource }, entry }
      entries.set(encodeEntryKey(change), change)
    }
    for (const entry of members) {
      const { dimension, entity } = entry
      const change: EntryChange = { kind: 'member', key: { dimension, entity }, entry }
      entries.set(encodeEntryKey(change), change)
    }
    const changes = this.#differences(entries)
    this.#entries = entries
    return changes
  }

  #differences(entries: ReadonlyMap<string, EntryChange>): readonly EntryChange[] {
    const changes: EntryChange[] = []
    for (const [key, before] of this.#entries) {
      if (!entries.has(key)) changes.push({ ...before, entry: undefined } as EntryChange)
    }
    for (const [key, change] of entries) {
      const before = this.#entries.get(key)
      if (before === undefined || encodeEntry(before) !== encodeEntry(change)) changes.push(change)
    }
    return changes
  }
}
