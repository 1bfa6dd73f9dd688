import type { Timers } from '@sluice/core'
import type { RedisArgument, RedisConnection } from '../../connection/connection.ts'
import { notSent } from '../../connection/connection.ts'
import { runAfterIo } from '../../system/event-loop.ts'
import type { NodeRedisClient } from './node-redis-connection.ts'
import { QUEUED, rethrow } from './node-redis-connection.ts'

/** The part of a `createSentinel` client of node-redis that is used, version 5 and later. */
export interface NodeRedisSentinel {
  readonly isReady: boolean
  /**
   * Runs a callback with the client of the primary, perhaps later, perhaps again: see {@link
   * NodeRedisSentinelConnection}.
   */
  _execute<T>(isReadonly: boolean, run: (client: NodeRedisClient) => Promise<T>): Promise<T>
}

/** Maximum time that a command waits while the client looks for the primary. */
const PRIMARY_TIMEOUT_MS = 100

/**
 * Adapts a sentinel client of node-redis. By default the client resends in-flight commands when the connection breaks,
 * which would charge twice, and queues commands while there is no primary. Here a command is sent at most once, within
 * 100 ms or not at all. While the client holds a command, no other is accepted.
 *
 * The client must have been created with `reserveClient: true`. Without it, one of two concurrent commands waits until
 * the client is idle, which under load is never.
 */
export class NodeRedisSentinelConnection implements RedisConnection {
  readonly client = 'node-redis sentinel'
  readonly writesLater = true
  readonly isCluster = false
  readonly close: () => Promise<void>
  readonly #sentinel: NodeRedisSentinel
  readonly #timers: Timers
  /** Commands that timed out and that the client still holds. */
  #held = 0

  constructor(sentinel: NodeRedisSentinel, timers: Timers, close: () => Promise<void>) {
    this.#sentinel = sentinel
    this.#timers = timers
    this.close = close
  }

  isReady(): boolean {
    return this.#sentinel.isReady && this.#held === 0
  }

  send(command: readonly RedisArgument[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      let state: 'waiting' | 'sent' | 'timed out' = 'waiting'
      let cancel: () => void = () => undefined
      const run = async (client: NodeRedisClient): Promise<void> => {
        cancel()
        if (state !== 'waiting') throw notSent('node-redis', `the command was ${state} already`)
        state = 'sent'
        // Settled here, because after an error the client may look for the primary before it reports the error.
        await client.sendCommand(command, QUEUED).then(resolve, (error: unknown) => {
          reject(error)
          throw error
        })
      }
      const timeOut = (): void => {
        state = 'timed out'
        this.#held++
        reject(notSent('node-redis', 'the sentinels name no primary that can be reached'))
      }
      this.#sentinel
        ._execute(false, run)
        .catch(reject)
        .finally(() => {
          cancel()
          if (state === 'timed out') this.#held--
          if (state === 'waiting') state = 'sent'
        })
      runAfterIo(() => {
        if (state === 'waiting') cancel = this.#timers.schedule(PRIMARY_TIMEOUT_MS, timeOut)
      })
    }).catch(rethrow)
  }
}
