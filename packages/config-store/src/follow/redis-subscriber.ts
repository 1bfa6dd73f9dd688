import { SluiceError } from '@sluice/core'

/** What is used of a client made by `createClient` of node-redis, version 5 and later. */
export interface NodeRedisPubSub {
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

/** What is used of a `Redis` of ioredis, version 5 and later. */
export interface IoRedisPubSub {
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

/** A client that can publish, and be copied for a subscription. */
export type RedisPubSubClient = NodeRedisPubSub | IoRedisPubSub

/** Who is told by a {@link Subscriber}. */
export interface SubscriberEvents {
  message(): void
  /** The connection is gone; called once at most, not after `close()`. */
  gone(error: unknown): void
}

/** A connection with a subscription. It does not connect again: another one takes its place. */
export interface Subscriber {
  /** Resolves when messages will come. */
  open(): Promise<void>
  close(): void
}

/** A timer of ioredis waits for a goodbye, even after the end. */
const DISCONNECT_TIMEOUT_MS = 200

/** A client as what it is used for, known by what it can do. */
export interface PubSub {
  /** Whether a message would be sent now, instead of being kept for later. */
  isReady(): boolean
  publish(channel: string): Promise<unknown>
  subscriber(channel: string, events: SubscriberEvents): Subscriber
}

/** @throws SluiceError `SLUICE_INVALID_OPTION` for anything but a client of node-redis or ioredis to one server */
export function pubSubOf(client: RedisPubSubClient): PubSub {
  const { isReady, status, publish, duplicate, slots, isCluster } = (client ?? {}) as Partial<
    NodeRedisPubSub & IoRedisPubSub & { slots: unknown; isCluster: unknown }
  >
  const isOne = slots === undefined && isCluster !== true
  if (isOne && typeof publish === 'function' && typeof duplicate === 'function') {
    if (typeof isReady === 'boolean') return nodeRedisPubSub(client as NodeRedisPubSub)
    if (typeof status === 'string') return ioRedisPubSub(client as IoRedisPubSub)
  }
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: 'changes cannot be announced over this client',
    received: client,
    expected: 'a client of node-redis (createClient) or ioredis (Redis)',
    action:
      'With a Redis Cluster, pass a client that is connected to any one of its nodes: all of them tell each other.',
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
