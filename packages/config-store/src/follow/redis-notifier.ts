import { type Random, systemRandom, systemTimers, type Timers } from '@sluice/core'
import { Backoff } from '../backoff.ts'
import type { Notifier } from '../notifier.ts'
import { system } from '../platform.ts'
import { type PubSub, pubSubOf, type RedisPubSubClient, type Subscriber } from './redis-subscriber.ts'

/** Longest wait before a lost subscription is tried again, at first and at all. */
const FIRST_RETRY_MS = 100
const LONGEST_RETRY_MS = 5000

/** How changes are announced over Redis. */
export interface RedisNotifierOptions {
  /** The same for all nodes of one configuration; `sluice:config` when left out. */
  readonly channel?: string
  /** How long an announcement may take; 1 s when left out. */
  readonly announceWithinMs?: number
  readonly timers?: Timers
  readonly random?: Random
}

/**
 * Tells nodes of changes by publish and subscribe of Redis, for databases that nodes share and that cannot notify. The client
 * is given and stays the caller's: messages are sent over it; each `watch` makes a connection of its own to the same place, by
 * `duplicate()`, connects it again by itself, and closes it.
 *
 * Redis keeps no message for whoever is not connected: `lost` is called after every gap, and polling finds the rest.
 *
 * @throws SluiceError `SLUICE_INVALID_OPTION` when the client is not one of node-redis or ioredis
 */
export function redisNotifier(client: RedisPubSubClient, options: RedisNotifierOptions = {}): Notifier {
  const { channel = 'sluice:config', announceWithinMs = 1000, random = systemRandom } = options
  const pubSub = pubSubOf(client)
  return {
    watch(changed, lost) {
      const timers = options.timers ?? system.backgroundTimers
      const subscription = new Subscription({ pubSub, channel, changed, lost, timers, random })
      return Promise.resolve(() => subscription.close())
    },
    async announce() {
      if (!pubSub.isReady()) return false
      const sent = pubSub.publish(channel).then(
        () => true,
        () => false,
      )
      return await within(announceWithinMs, sent, options.timers ?? systemTimers)
    },
  }
}

interface SubscriptionOptions {
  readonly pubSub: PubSub
  readonly channel: string
  readonly changed: () => void
  readonly lost: (error: unknown) => void
  readonly timers: Timers
  readonly random: Random
}

/** A subscription that is made again whenever its connection is lost. */
class Subscription {
  readonly #options: SubscriptionOptions
  readonly #backoff: Backoff
  #subscriber: Subscriber | undefined
  #cancelTimer: (() => void) | undefined
  /** Why messages may have been missed; undefined at the first try. */
  #gap: { readonly error: unknown } | undefined
  #isClosed = false

  constructor(options: SubscriptionOptions) {
    const { random } = options
    this.#options = options
    this.#backoff = new Backoff({ firstMs: FIRST_RETRY_MS, longestMs: LONGEST_RETRY_MS, random })
    this.#connect()
  }

  close(): Promise<void> {
    this.#isClosed = true
    this.#cancelTimer?.()
    this.#subscriber?.close()
    return Promise.resolve()
  }

  #connect(): void {
    const { pubSub, channel, changed } = this.#options
    const gone = (error: unknown): void => this.#again(subscriber, error)
    const subscriber = pubSub.subscriber(channel, { message: changed, gone })
    this.#subscriber = subscriber
    subscriber.open().then(
      () => this.#opened(subscriber),
      (error: unknown) => this.#again(subscriber, error),
    )
  }

  #opened(subscriber: Subscriber): void {
    if (this.#isClosed || this.#subscriber !== subscriber) return
    this.#backoff.reset()
    const { changed, lost } = this.#options
    // Nobody listened before; whoever watches should look once.
    if (this.#gap === undefined) changed()
    else lost(this.#gap.error)
    this.#gap = undefined
  }

  #again(subscriber: Subscriber, error: unknown): void {
    if (this.#isClosed || this.#subscriber !== subscriber) return
    this.#subscriber = undefined
    this.#gap = { error }
    subscriber.close()
    this.#cancelTimer = this.#options.timers.schedule(this.#backoff.nextMs(), () => this.#connect())
  }
}

/** False when the answer takes too long. */
function within(longestMs: number, answer: Promise<boolean>, timers: Timers): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = timers.schedule(longestMs, () => resolve(false))
    answer.then((value) => {
      cancel()
      resolve(value)
    })
  })
}
