import {
  type Clock,
  type Random,
  SluiceError,
  systemClock,
  systemRandom,
  systemTimers,
  type Timers,
} from '@sluice/core'
import { checkOptionNames, MICROS_PER_MS } from '@sluice/core/internal'
import { platform } from '../clock-and-random.ts'
import type { ChangeFeed, Notifier } from '../config-store.ts'
import { ChangeNotifications } from './change-notifications.ts'
import { type CacheOptions, ConfigCache } from './config-cache.ts'
import { type ConfigFollower, type ConfigObserver, type ConfigStats, tell } from './config-follower.ts'
import { ConfigLoader } from './config-loader.ts'
import type { ConfigTarget } from './config-target.ts'
import { checkPollMs, Poller, type PollResult } from './poller.ts'

/** If the database has not replied after this time at the start, the cache file is used. */
const DISK_AFTER_MS = 1000

/** Options of {@link followConfig}. */
export interface FollowOptions {
  /**
   * The feed, or a function that opens it. The function is called until it succeeds, so the database may be unreachable
   * at the start. The follower does not close the feed.
   */
  readonly feed: ChangeFeed | (() => Promise<ChangeFeed>)
  readonly target: ConfigTarget
  /** Additional notifications, for databases that have none of their own. */
  readonly notifiers?: readonly Notifier[]
  /** Stores the last good configuration on disk. Default: none. */
  readonly cache?: CacheOptions
  /** Poll interval in milliseconds, above 0. Default: 5000. */
  readonly pollMs?: number
  /** Maximum time in milliseconds that `ready()` waits, from the start. Default: 10,000. */
  readonly waitMs?: number
  readonly observe?: ConfigObserver
  readonly clock?: Clock
  readonly timers?: Timers
  readonly random?: Random
}

/**
 * Keeps a target up to date with a configuration store: loads everything, then follows changes by notifications and
 * polling. While the database is unreachable, the last known configuration stays active, and connecting is retried. If
 * it is unreachable at the start, the cache file is used. Starts immediately.
 */
export function followConfig(options: FollowOptions): ConfigFollower {
  checkOptionNames(options, {
    name: 'followConfig',
    options: [
      ...['feed', 'target', 'notifiers', 'cache', 'pollMs', 'waitMs', 'observe'],
      ...['clock', 'timers', 'random'],
    ],
    example: '{ feed: store.feed, target: engineTarget(engine) }',
  })
  if (options.cache !== undefined) {
    const example = "{ path: 'config-cache.json' }"
    checkOptionNames(options.cache, { name: '"cache"', options: ['path', 'source', 'pauseMs'], example })
  }
  checkPollMs(options.pollMs)
  return new FeedFollower(options)
}

interface Waiter {
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
  readonly cancel: () => void
}

class FeedFollower implements ConfigFollower {
  readonly #options: FollowOptions
  readonly #clock: Clock
  readonly #timers: Timers
  readonly #pollMs: number
  readonly #startedAtMs: number
  readonly #cache: ConfigCache | undefined
  readonly #loader: ConfigLoader
  readonly #poller: Poller
  readonly #hints: ChangeNotifications
  readonly #waiting = new Set<Waiter>()
  readonly #cancelDisk: () => void
  #feed: ChangeFeed | undefined
  #refreshes = 0
  #failures = 0
  #notifications = 0
  #lastRefreshAt: number | undefined
  #unavailableSinceMs: number | undefined
  #lastError: unknown
  #closing: Promise<void> | undefined

  constructor(options: FollowOptions) {
    const { clock = systemClock, random = systemRandom, pollMs = 5000, observe, target, cache } = options
    const timers = options.timers ?? platform.backgroundTimers
    this.#options = options
    this.#clock = clock
    // A caller awaits these timers, so they keep the process alive.
    this.#timers = options.timers ?? systemTimers
    this.#pollMs = pollMs
    this.#startedAtMs = this.#nowMs()
    this.#cache = cache === undefined ? undefined : new ConfigCache(cache, { clock, timers, random, observe })
    this.#loader = new ConfigLoader({ target, cache: this.#cache, clock, observe })
    this.#poller = new Poller({ poll: () => this.#poll(), pollMs, clock, timers, random })
    this.#hints = new ChangeNotifications({
      changed: () => {
        this.#notifications++
        this.#poller.hint()
      },
      begun: () => this.#poller.hint(),
      lost: (error) => {
        tell(observe, { type: 'hints-lost', error })
        this.#poller.hint()
      },
    })
    this.#cancelDisk = timers.schedule(DISK_AFTER_MS, () => void this.#useDisk())
    this.#poller.now().catch(() => undefined)
  }

  get hasRules(): boolean {
    const { isLoaded, versions } = this.#loader
    return isLoaded && versions.current.enforced !== undefined
  }

  ready(): Promise<void> {
    if (this.#loader.isLoaded) return Promise.resolve()
    if (this.#closing !== undefined) return Promise.reject(this.#notReady())
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const leftMs = Math.max(0, this.#startedAtMs + (this.#options.waitMs ?? 10_000) - this.#nowMs())
    const giveUp = (): void => {
      this.#waiting.delete(waiter)
      reject(this.#notReady())
    }
    const waiter = { resolve, reject, cancel: this.#timers.schedule(leftMs, giveUp) }
    this.#waiting.add(waiter)
    return promise
  }

  refresh(): Promise<void> {
    return this.#poller.now()
  }

  stats(): ConfigStats {
    const { versions, source, position, currentAtMs } = this.#loader
    const knownAtMs = currentAtMs ?? this.#startedAtMs
    return {
      source,
      enforcedVersion: versions.current.enforced?.number,
      candidateVersion: versions.current.candidate?.number,
      refused: versions.refused,
      position,
      refreshes: this.#refreshes,
      failures: this.#failures,
      lastRefreshAt: this.#lastRefreshAt,
      unavailableSince: this.#unavailableSinceMs,
      lagMs: Math.max(0, this.#nowMs() - knownAtMs - this.#pollMs),
      notifications: this.#notifications,
      polls: this.#poller.polls,
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
    this.#cancelDisk()
    for (const { cancel, reject } of this.#waiting) {
      cancel()
      reject(this.#notReady())
    }
    this.#waiting.clear()
    const stopped = this.#loader.stop()
    await Promise.all([stopped, this.#poller.close(), this.#hints.close()])
    await this.#cache?.close()
  }

  async #poll(): Promise<PollResult> {
    try {
      for (const notifier of this.#options.notifiers ?? []) this.#hints.watch(notifier)
      const feed = await this.#openFeed()
      await this.#loader.update(feed)
      this.#hints.watch(feed)
      this.#succeeded()
      return { isDone: true, error: undefined }
    } catch (error) {
      this.#failed(error)
      return { isDone: false, error }
    }
  }

  async #openFeed(): Promise<ChangeFeed> {
    const { feed } = this.#options
    if (this.#feed === undefined) {
      const opened = typeof feed === 'function' ? await feed() : feed
      checkPrefixLength(opened, this.#options.target)
      this.#feed = opened
    }
    return this.#feed
  }

  #succeeded(): void {
    this.#refreshes++
    this.#lastRefreshAt = this.#nowMs()
    if (this.#unavailableSinceMs !== undefined) {
      tell(this.#options.observe, { type: 'recovered', afterMs: this.#nowMs() - this.#unavailableSinceMs })
    }
    this.#unavailableSinceMs = undefined
    this.#release()
  }

  #failed(error: unknown): void {
    this.#failures++
    this.#lastError = error
    if (this.#unavailableSinceMs === undefined) tell(this.#options.observe, { type: 'unavailable', error })
    this.#unavailableSinceMs ??= this.#nowMs()
    void this.#useDisk()
  }

  async #useDisk(): Promise<void> {
    await this.#loader.loadFromDisk()
    this.#release()
  }

  #release(): void {
    if (!this.#loader.isLoaded) return
    this.#cancelDisk()
    for (const { cancel, resolve } of this.#waiting) {
      cancel()
      resolve()
    }
    this.#waiting.clear()
  }

  #notReady(): SluiceError {
    const [refused] = this.#loader.versions.refused
    return new SluiceError('SLUICE_CONFIG_UNAVAILABLE', {
      problem: refused === undefined ? 'no configuration could be loaded' : `version ${refused.number} cannot be used`,
      action:
        'Sluice retries automatically. Check that the database is running, and the URL that this process connects to.',
      cause: this.#lastError ?? refused?.reason,
    })
  }

  #nowMs(): number {
    return this.#clock.nowMicros() / MICROS_PER_MS
  }
}

/**
 * With different prefix lengths, two entries of the feed can be one entry to the target, or the reverse. The active one
 * would then depend on the order of changes.
 */
function checkPrefixLength({ ipv6PrefixLength: kept }: ChangeFeed, { ipv6PrefixLength: counted }: ConfigTarget): void {
  if (kept === undefined || counted === undefined || kept === counted) return
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: '"ipv6PrefixLength" of the configuration store is not that of the engine that follows it',
    received: kept,
    expected: String(counted),
    action: `Open the configuration store with "ipv6PrefixLength" ${counted}.`,
  })
}
