import { SluiceError } from '@sluice/core'
import type { RedisArgument, RedisConnection } from '../../connection/connection.ts'
import { notSent } from '../../connection/connection.ts'

/** The part of a `createClient` client of node-redis that is used, version 5 and later. */
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

/** Bulk strings as buffers. node-redis identifies the type of a reply by its RESP marker, here `$`. */
const BUFFERS = { 36: Buffer } as const

/**
 * For clients with an offline queue. The timeout applies to commands that are not written yet: without it, a command
 * sent when the connection is about to break would wait in the queue, and be executed when the server is back.
 */
export const QUEUED: NodeRedisCommandOptions = { typeMapping: BUFFERS, timeout: 1000 }

/** For clients with `disableOfflineQueue`: no timeout, because node-redis would create a timer per command. */
const UNQUEUED: NodeRedisCommandOptions = { typeMapping: BUFFERS, timeout: 0 }

/**
 * Adapts a client of node-redis. The offline queue is not used: nothing is sent while the client is not ready. When the
 * connection breaks, node-redis rejects in-flight commands and never resends them.
 */
export function nodeRedisConnection(client: NodeRedisClient, close: () => Promise<void>): RedisConnection {
  const state = new ClientState('createClient', client)
  const options = client.options?.disableOfflineQueue === true ? UNQUEUED : QUEUED
  return {
    client: 'node-redis',
    isCluster: false,
    writesLater: true,
    isReady: () => state.isReady(),
    obstacle: () => state.obstacle(),
    send: (command) => client.sendCommand(command, options).catch(rethrow),
    close,
  }
}

/** Distinguishes a client that was never connected from one that lost its connection or was closed. */
export class ClientState {
  readonly #factory: string
  readonly #client: Pick<NodeRedisClient, 'isOpen' | 'isReady'>
  #wasOpen = false

  constructor(factory: string, client: Pick<NodeRedisClient, 'isOpen' | 'isReady'>) {
    this.#factory = factory
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
      expected: `a client of ${this.#factory}() that is connected, or connecting`,
      action: 'Call `await client.connect()` once, before the first check.',
    })
  }
}

/** Errors that node-redis raises only for commands that were not written. */
const NOT_WRITTEN: ReadonlySet<string> = new Set([
  'AbortError',
  'ClientClosedError',
  'ClientOfflineError',
  'CommandTimeoutDuringMaintenanceError',
  'TimeoutError',
])

/** Rethrows an error of node-redis; as {@link notSent} if the command was not written. */
export function rethrow(error: unknown): never {
  const isUnsent =
    error instanceof Error && (NOT_WRITTEN.has(error.constructor.name) || error.message === 'The queue is full')
  throw isUnsent ? notSent('node-redis', error) : error
}
