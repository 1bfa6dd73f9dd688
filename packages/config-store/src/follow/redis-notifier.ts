import { type Random, SluiceError, systemRandom, systemTimers, type Timers } from '@sluice/core'
import { platform } from '../clock-and-random.ts'
import type { Notifier } from '../config-store.ts'
import { Backoff } from '../retry-backoff.ts'

/** Backoff of reconnecting a lost subscription: first and maximum delay. */
const FIRST_RETRY_MS = 100
const LONGEST_RETRY_MS = 5000

/** Options of {@link redisNotifier}. */
export interface RedisNotifierOptions {
  /** Pub/sub channel; the same for all nodes of one configuration. Default: `sluice:config`. */
  readonly channel?: string
  /** Timeout of an announcement in milliseconds. Default: 1000. */
  readonly announceWithinMs?: number
  readonly timers?: Timers
  readonly random?: Random
}

/**
 * Notifies nodes of changes by Redis pub/sub, for shared databases that cannot notify. The caller owns the client:
 * messages are published over it, and each `watch` opens a connection of its own with `duplicate()`, reconnects it and
 * closes it.
 *
 * Redis does not store messages for disconnected clients: `lost` is called after every gap, and polling finds the
 * changes.
 *
 * @throws SluiceError `SLUICE_INVALID_OPTION` if the client is not one of node-redis or ioredis
 */
export function redisNotifier(client: RedisPubSubClient, options: RedisNotifierOptions = {}): Notifier {
  const { channel = 'sluice:config', announceWithinMs = 1000, random = systemRandom } = options
  const pubSub = pubSubOf(client)
  return {
    watch(changed, lost) {
      const timers = options.timers ?? platform.backgroundTimers
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

/** A subscription that reconnects whenever its connection is lost. */
class Subscription {
  readonly #options: SubscriptionOptions
  readonly #backoff: Backoff
  #subscriber: Subscriber | undefined
  #cancelTimer: (() => void) | undefined
  /** Why messages may have been lost. Undefined at the first attempt. */
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
    // Nothing was received before: watchers poll once.
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

/** Resolves with false on timeout. */
function within(longestMs: number, answer: Promise<boolean>, timers: Timers): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = timers.schedule(longestMs, () => resolve(false))
    answer.then((value) => {
      cancel()
      resolve(value)
    })
  })
}

/** The methods used of a node-redis client (`createClient`), version 5 and later. */
interface NodeRedisPubSub {
  readonly isReady: boolean
  readonly options?: { readonly socket?: object | undefined } | undefined
  duplicate(options: object): NodeRedisCopy
  publish(channel: string, message: string): Promise<unknown>
}

interface NodeRedisCopy {
  readonly isOpen: boolean
  connect(): Promise<unknown>
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>
  on(event: string, listener: (error?: unknown) => void): unknown
  destroy(): void
}

/** The methods used of an ioredis client (`Redis`), version 5 and later. */
interface IoRedisPubSub {
  readonly status: string
  duplicate(options: object): IoRedisCopy
  publish(channel: string, message: string): Promise<unknown>
}

interface IoRedisCopy {
  connect(): Promise<unknown>
  subscribe(channel: string): Promise<unknown>
  on(event: string, listener: (error?: unknown) => void): unknown
  disconnect(): void
}

/** A client that can publish, and be duplicated for a subscription. */
export type RedisPubSubClient = NodeRedisPubSub | IoRedisPubSub

/** Callbacks of a {@link Subscriber}. */
interface SubscriberEvents {
  message(): void
  /** The connection was lost. Called at most once, and not after `close()`. */
  gone(error: unknown): void
}

/** A connection with a subscription. It does not reconnect: a new one replaces it. */
interface Subscriber {
  /** Resolves when the subscription is active. */
  open(): Promise<void>
  close(): void
}

/** ioredis keeps a timer for the reply to QUIT, even after disconnecting. */
const DISCONNECT_TIMEOUT_MS = 200

/** Pub/sub over either client. */
interface PubSub {
  /** Whether a message is sent now, instead of being queued. */
  isReady(): boolean
  publish(channel: string): Promise<unknown>
  subscriber(channel: string, events: SubscriberEvents): Subscriber
}

/** @throws SluiceError `SLUICE_INVALID_OPTION` for anything but a client of node-redis or ioredis to one server */
function pubSubOf(client: RedisPubSubClient): PubSub {
  const { isReady, status, publish, duplicate, slots, isCluster } = (client ?? {}) as Partial<
    NodeRedisPubSub & IoRedisPubSub & { slots: unknown; isCluster: unknown }
  >
  const isOne = slots === undefined && isCluster !== true
  if (isOne && typeof publish === 'function' && typeof duplicate === 'function') {
    if (typeof isReady === 'boolean') return nodeRedisPubSub(client as NodeRedisPubSub)
    if (typeof status === 'string') return ioRedisPubSub(client as IoRedisPubSub)
  }
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: 'this client cannot be used for pub/sub',
    received: client,
    expected: 'a client of node-redis (createClient) or ioredis (Redis)',
    action:
      'With Redis Cluster, pass a client that is connected to any one node: the nodes forward messages to each other.',
  })
}

function nodeRedisPubSub(client: NodeRedisPubSub): PubSub {
  return {
    isReady: () => client.isReady,
    publish: (channel) => client.publish(channel, ''),
    subscriber(channel, { message, gone }) {
      const socket = { ...client.options?.socket, reconnectStrategy: false }
      const copy = client.duplicate({ socket })
      const tellGone = once(gone)
      copy.on('error', tellGone.tell)
      copy.on('end', tellGone.tell)
      return {
        async open() {
          await copy.connect()
          await copy.subscribe(channel, message)
        },
        close() {
          tellGone.forget()
          if (copy.isOpen) copy.destroy()
        },
      }
    },
  }
}

function ioRedisPubSub(client: IoRedisPubSub): PubSub {
  return {
    isReady: () => client.status === 'ready',
    publish: (channel) => client.publish(channel, ''),
    subscriber(channel, { message, gone }) {
      const copy = client.duplicate({
        lazyConnect: true,
        retryStrategy: () => null,
        autoResubscribe: false,
        maxRetriesPerRequest: 0,
        disconnectTimeout: DISCONNECT_TIMEOUT_MS,
      })
      const tellGone = once(gone)
      copy.on('error', tellGone.tell)
      copy.on('end', tellGone.tell)
      copy.on('message', message)
      return {
        async open() {
          await copy.connect()
          await copy.subscribe(channel)
        },
        close() {
          tellGone.forget()
          copy.disconnect()
        },
      }
    },
  }
}

function once(tell: (error: unknown) => void): { tell: (error?: unknown) => void; forget: () => void } {
  let isOver = false
  return {
    tell(error) {
      if (isOver) return
      isOver = true
      tell(error ?? new Error('the connection to Redis has ended'))
    },
    forget() {
      isOver = true
    },
  }
}
