import type { Timers } from '@sluice/core'
import { notSent } from '../../connection/client-failure.ts'
import type { RedisArgument, RedisConnection } from '../../connection/connection.ts'
import { atTurnEnd } from '../../system/event-loop.ts'
import type { NodeRedisClient } from './node-redis-connection.ts'
import { QUEUED, rethrow } from './node-redis-connection.ts'

/** What is used of a client made by `createSentinel` of node-redis, version 5 and later. */
export interface NodeRedisSentinel {
  readonly isReady: boolean
  /** Runs something on the client of the primary, perhaps later, perhaps again: see {@link nodeRedisSentinelConnection}. */
  _execute<T>(isReadonly: boolean, run: (client: NodeRedisClient) => Promise<T>): Promise<T>
}

/** How long a command may wait while the sentinels are asked where the primary is. */
const LONGEST_WAIT_MS = 100

/**
 * A sentinel client of node-redis as a connection. Left to itself it sends a command again when the connection broke while
 * it was under way, which would charge twice, and holds commands for as long as there is no primary. Here each is sent at
 * most once, and soon or not at all; while one is held, no other is accepted.
 *
 * The client must be made with `reserveClient: true`: without it, one of two commands of the same moment waits until the
 * client is idle, which under load is never.
 */
export class NodeRedisSentinelConnection implements RedisConnection {
  readonly client = 'node-redis sentinel'
  readonly writesLater = true
  readonly isCluster = false
  readonly close: () => Promise<void>
  readonly #sentinel: NodeRedisSentinel
  readonly #timers: Timers
  /** Commands that the client holds and that are given up. */
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
      let state: 'waiting' | 'sent' | 'given up' = 'waiting'
      let cancel: () => void = () => undefined
      const run = async (client: NodeRedisClient): Promise<void> => {
        cancel()
        if (state !== 'waiting') throw notSent('node-redis', `the command was ${state} already`)
        state = 'sent'
        // The answer is told here: with an error the client may go on to look for the primary before it reports it.
        await client.sendCommand(command, QUEUED).then(resolve, (error: unknown) => {
          reject(error)
          throw error
        })
      }
      const giveUp = (): void => {
        state = 'given up'
        this.#held++
        reject(notSent('node-redis', 'the sentinels name no primary that can be reached'))
      }
      this.#sentinel
        ._execute(false, run)
        .catch(reject)
        .finally(() => {
          cancel()
          if (state === 'given up') this.#held--
          if (state === 'waiting') state = 'sent'
        })
      atTurnEnd(() => {
        if (state === 'waiting') cancel = this.#timers.schedule(LONGEST_WAIT_MS, giveUp)
      })
    }).catch(rethrow)
  }
}
