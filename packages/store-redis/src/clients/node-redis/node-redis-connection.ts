import { SluiceError } from '@sluice/core'
import { notSent } from '../../connection/client-failure.ts'
import type { RedisArgument, RedisConnection } from '../../connection/connection.ts'

/** What is used of a client made by `createClient` of node-redis, version 5 and later. */
export interface NodeRedisClient {
  readonly isOpen: boolean
  readonly isReady: boolean
  readonly options?: { readonly disableOfflineQueue?: boolean | undefined } | undefined
  sendCommand(args: readonly RedisArgument[], options?: NodeRedisCommandOptions): Promise<unknown>
}

/** Options of one command of node-redis. */
export interface NodeRedisCommandOptions {
  readonly typeMapping?: Readonly<Record<number, unknown>>
  readonly timeout?: number
}

/** In node-redis the type of a reply is known by the byte that RESP marks it with: `$` for bulk strings. */
const BUFFERS = { 36: Buffer } as const

/**
 * For clients that have a queue. The timeout is for commands that are not written yet: without it, one that met a connection
 * about to break would wait in the queue and be done whenever the server is back.
 */
export const QUEUED: NodeRedisCommandOptions = { typeMapping: BUFFERS, timeout: 1000 }

/** For clients with `disableOfflineQueue`. The timeout would only cost: node-redis makes a timer for every command. */
const UNQUEUED: NodeRedisCommandOptions = { typeMapping: BUFFERS, timeout: 0 }

/**
 * A client of node-redis as a connection. Its offline queue is not used: nothing is sent while it is not ready. What was
 * under way when the connection broke is rejected by node-redis and never sent again.
 */
export function nodeRedisConnection(client: NodeRedisClient, close: () => Promise<void>): RedisConnection {
  const use = new NodeRedisUse('createClient', client)
  const options = client.options?.disableOfflineQueue === true ? UNQUEUED : QUEUED
  return {
    client: 'node-redis',
    isCluster: false,
    writesLater: true,
    isReady: () => use.isReady(),
    obstacle: () => use.obstacle(),
    send: (command) => client.sendCommand(command, options).catch(rethrow),
    close,
  }
}

/** Tells a client that nobody has connected from one that has lost its connection, or was closed. */
export class NodeRedisUse {
  readonly #maker: string
  readonly #client: Pick<NodeRedisClient, 'isOpen' | 'isReady'>
  #wasOpen = false

  constructor(maker: string, client: Pick<NodeRedisClient, 'isOpen' | 'isReady'>) {
    this.#maker = maker
    this.#client = client
  }

  isReady(): boolean {
    this.#wasOpen ||= this.#client.isOpen
    return this.#client.isReady
  }

  obstacle(): Error | undefined {
    this.#wasOpen ||= this.#client.isOpen
    if (this.#wasOpen) return undefined
    return new SluiceError('SLUICE_INVALID_OPTION', {
      problem: 'the node-redis client given to the Redis store was never connected',
      expected: `a client of ${this.#maker}() that is connected, or connecting`,
      action: 'Call `await client.connect()` once, before the first check.',
    })
  }
}

/** Errors of node-redis that it raises only for commands that were not written. */
const NOT_WRITTEN: ReadonlySet<string> = new Set([
  'AbortError',
  'ClientClosedError',
  'ClientOfflineError',
  'CommandTimeoutDuringMaintenanceError',
  'TimeoutError',
])

/** Passes an error of node-redis on, as one that says that nothing was sent where that is so. */
export function rethrow(error: unknown): never {
  const isUnsent =
    error instanceof Error && (NOT_WRITTEN.has(error.constructor.name) || error.message === 'The queue is full')
  throw isUnsent ? notSent('node-redis', error) : error
}
