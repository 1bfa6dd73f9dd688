import { createHash } from 'node:crypto'
import { basename, dirname, resolve } from 'node:path'
import type { Clock, FileContent, Random, Timers } from '@sluice/core'
import { systemClock, systemRandom } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import { VersionGate } from '../follow/active-versions.ts'
import { type ConfigFollower, type ConfigObserver, type ConfigStats, tell } from '../follow/config-follower.ts'
import type { ConfigTarget } from '../follow/config-target.ts'
import { HintSources } from '../follow/hint-sources.ts'
import { checkPollMs, LookLine, type LookResult } from '../follow/poller.ts'
import { system } from '../platform.ts'
import type { VersionContent } from '../versions.ts'
import { FileEntries } from './file-entries.ts'
import { FolderHints } from './folder-hints.ts'
import { parseConfigFile } from './parse-config-file.ts'
import { WatchedFile } from './watched-file.ts'

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
  readonly #gate: VersionGate
  readonly #entries = new FileEntries()
  readonly #looks: LookLine
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
    const timers = options.timers ?? system.backgroundTimers
    this.#name = basename(path)
    this.#options = options
    this.#clock = clock
    this.#pollMs = pollMs
    this.#startedAtMs = this.#nowMs()
    // Whoever awaits a look must not depend on a timer that does not keep the process alive.
    this.#file = new WatchedFile({ path, settleMs, timers: options.timers ?? system.timers })
    this.#folder = new FolderHints(dirname(path))
    this.#gate = new VersionGate(target, observe)
    this.#looks = new LookLine({ look: () => this.#look(), pollMs, clock, timers, random })
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
    this.#first = this.#looks.now()
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
    return this.#looks.now()
  }

  stats(): FileConfigStats {
    const { enforced, candidate } = this.#gate.inForce
    return {
      source: this.#number > 0 ? 'file' : 'none',
      enforcedVersion: enforced?.number,
      candidateVersion: candidate?.number,
      refused: this.#gate.refused,
      position: this.#number > 0 ? this.#number : undefined,
      refreshes: this.#refreshes,
      failures: this.#failures,
      lastRefreshAt: this.#currentAtMs,
      unavailableSince: this.#awaySinceMs,
      lagMs: Math.max(0, this.#nowMs() - (this.#currentAtMs ?? this.#startedAtMs) - this.#pollMs),
      notifications: this.#notifications,
      polls: this.#looks.polls,
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
    await Promise.all([this.#looks.close(), this.#hints.close()])
  }

  #hint(): void {
    this.#mustRead = true
    this.#looks.hint()
  }

  async #look(): Promise<LookResult> {
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
      this.#gate.confirm()
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
      this.#gate.refuse(number, error)
      return
    }
    this.#tellService(parsed.service)
    this.#problem = this.#gate.offer({ enforced: this.#versionOf(number, parsed), candidate: undefined })
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
