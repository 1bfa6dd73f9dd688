import { createHash } from 'node:crypto'
import { basename, dirname, resolve } from 'node:path'
import { type Clock, type Random, systemClock, systemRandom, type Timers } from '@sluice/core'
import { checkOptionNames, MICROS_PER_MS } from '@sluice/core/internal'
import type { FileContent, GatewayParts, RuleSet } from '@sluice/core/policy'
import { platform } from '../clock-and-random.ts'
import type { EntryChange } from '../config-store.ts'
import { ActiveVersions } from '../follow/active-versions.ts'
import { ChangeNotifications } from '../follow/change-notifications.ts'
import { type ConfigFollower, type ConfigObserver, type ConfigStats, tell } from '../follow/config-follower.ts'
import type { ConfigTarget } from '../follow/config-target.ts'
import { encodeEntry, encodeEntryKey } from '../follow/entry-encoding.ts'
import { checkPollMs, Poller, type PollResult } from '../follow/poller.ts'
import type { VersionContent } from '../rule-set-versions.ts'
import { type CheckGateway, parseConfigFile } from './parse-config-file.ts'
import { FolderHints, WatchedFile } from './watched-file.ts'

/** Options of {@link fileConfig}. */
export interface FileConfigOptions {
  readonly target: ConfigTarget
  /** Names of the cost functions that rules may use. Default: any name. */
  readonly costFunctions?: readonly string[]
  /**
   * Poll interval in milliseconds, above 0: the maximum delay of a change that the file system does not report.
   * Default: 5000.
   */
  readonly pollMs?: number
  /**
   * Time in milliseconds for which a changed file must stay unchanged before it is read: it may still be being written.
   * Default: 100.
   */
  readonly settleMs?: number
  readonly observe?: ConfigObserver
  /**
   * Called with the `service` section of the file, unchecked, whenever a file without problems is read. Undefined if
   * there is no such section. Exceptions are ignored.
   */
  readonly onService?: (service: FileContent['service']) => void
  /**
   * Checks the parts for a gateway, so that their problems are reported with those of the rules and nothing of the file
   * takes effect. Default: they are not checked.
   */
  readonly checkGateway?: CheckGateway
  /** Whether the file must have `rules`. False for a file of a gateway whose rules are elsewhere. Default: true. */
  readonly needsRules?: boolean
  /**
   * Called with the parts for a gateway, and the rules beside them, whenever a file has taken effect. Undefined if
   * there are no such parts. Exceptions are ignored.
   */
  readonly onGateway?: (parts: GatewayParts | undefined, ruleSet: RuleSet) => void
  readonly clock?: Clock
  readonly timers?: Timers
  readonly random?: Random
}

/** Status of a file follower. */
export interface FileConfigStats extends ConfigStats {
  /** SHA-256 of the active content, in hexadecimal. Undefined before the first. */
  readonly contentHash: string | undefined
}

/** Follows a file. Its versions are numbered from 1, one per content. */
export interface FileConfig extends ConfigFollower {
  /**
   * Resolves when the file is active. Rejects immediately with the problems of the file; it is read again when it
   * changes.
   */
  ready(): Promise<void>
  /** Reads the file now. Rejects with its problems. */
  refresh(): Promise<void>
  stats(): FileConfigStats
}

/**
 * Keeps a target up to date with a file, `sluice.yaml` or JSON, instead of a database. A change of the file takes
 * effect automatically and atomically. If the file has problems or is missing, the previous content stays active and
 * the problem is reported. Starts immediately.
 */
export function fileConfig(path: string, options: FileConfigOptions): FileConfig {
  checkOptionNames(options, {
    name: 'fileConfig',
    options: [
      ...['target', 'costFunctions', 'pollMs', 'settleMs', 'observe', 'onService'],
      ...['checkGateway', 'needsRules', 'onGateway', 'clock', 'timers', 'random'],
    ],
    example: '{ target: engineTarget(engine) }',
  })
  checkPollMs(options.pollMs)
  return new FileFollower(resolve(path), options)
}

/** The parts of a content that callbacks receive. The others can be large. */
type Told = Omit<FileContent, 'overrides' | 'members'>

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
  readonly #hints: ChangeNotifications
  readonly #first: Promise<void>
  #number = 0
  /** Hash of the active content, and of the content read last. */
  #contentHash: string | undefined
  #readHash: string | undefined
  /** What callbacks received of the active content; undefined before the first. */
  #active: Told | undefined
  /** The problem of the content read last. */
  #problem: unknown
  /** Whether to read the content even if the file metadata is unchanged. */
  #mustRead = true
  #refreshes = 0
  #failures = 0
  #notifications = 0
  #currentAtMs: number | undefined
  #unavailableSinceMs: number | undefined
  #closing: Promise<void> | undefined

  constructor(path: string, options: FileConfigOptions) {
    const { clock = systemClock, random = systemRandom, pollMs = 5000, settleMs = 100, observe, target } = options
    const timers = options.timers ?? platform.backgroundTimers
    this.#name = basename(path)
    this.#options = options
    this.#clock = clock
    this.#pollMs = pollMs
    this.#startedAtMs = this.#nowMs()
    // Callers await polls, so these timers must keep the process alive.
    this.#file = new WatchedFile({ path, settleMs, timers: options.timers ?? platform.timers })
    this.#folder = new FolderHints(dirname(path))
    this.#versions = new ActiveVersions(target, observe)
    this.#poller = new Poller({ poll: () => this.#poll(), pollMs, clock, timers, random })
    this.#hints = new ChangeNotifications({
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
      unavailableSince: this.#unavailableSinceMs,
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
    // The active content was restored.
    if (hash === this.#contentHash) {
      this.#versions.confirm()
      this.#tellService(this.#active?.service)
      this.#tellGateway(this.#active!)
    } else this.#use(content, hash)
  }

  #use(content: Uint8Array, hash: string): void {
    const { costFunctions, checkGateway, needsRules } = this.#options
    const number = this.#number + 1
    let parsed: FileContent
    try {
      parsed = parseConfigFile(content, this.#name, {
        ...(costFunctions === undefined ? {} : { costFunctions }),
        ...(checkGateway === undefined ? {} : { checkGateway }),
        ...(needsRules === undefined ? {} : { needsRules }),
      })
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
    const { overrides: _overrides, members: _members, ...told } = parsed
    this.#active = told
    const changes = this.#entries.replace(parsed)
    if (changes.length > 0) this.#options.target.apply(changes)
    this.#tellGateway(parsed)
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
      // A failing callback must not affect limits.
    }
  }

  #tellGateway({ gateway, ruleSet }: Told): void {
    try {
      this.#options.onGateway?.(gateway, ruleSet)
    } catch {
      // A failing callback must not affect limits.
    }
  }

  #versionOf(number: number, { ruleSet }: FileContent): VersionContent {
    const readAt = Math.floor(this.#nowMs())
    return {
      number,
      stage: 'enforce',
      percent: 0,
      basedOn: number === 1 ? undefined : number - 1,
      createdAt: readAt,
      createdBy: this.#name,
      enforcedAt: readAt,
      note: undefined,
      revision: 1,
      ruleSet,
    }
  }

  #found(beganAtMs: number): void {
    this.#refreshes++
    this.#currentAtMs = beganAtMs
    if (this.#unavailableSinceMs !== undefined) {
      tell(this.#options.observe, { type: 'recovered', afterMs: this.#nowMs() - this.#unavailableSinceMs })
    }
    this.#unavailableSinceMs = undefined
  }

  #missed(error: unknown): void {
    this.#failures++
    this.#mustRead = true
    if (this.#unavailableSinceMs === undefined) tell(this.#options.observe, { type: 'unavailable', error })
    this.#unavailableSinceMs ??= this.#nowMs()
  }

  #nowMs(): number {
    return this.#clock.nowMicros() / MICROS_PER_MS
  }
}

/** The overrides and memberships of a file. Computes the changes between two contents. */
class FileEntries {
  /** By encoded key. */
  #entries = new Map<string, EntryChange>()

  /** Replaces the entries. Returns those that changed or were removed. */
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
