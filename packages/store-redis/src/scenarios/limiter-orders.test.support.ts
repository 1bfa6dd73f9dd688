import type { Decision, Rule, RuleRequest } from '@sluice/core'
import type { RedisStoreOptions, RedisStoreStats } from '../redis-store.ts'
import type { Tally } from './tally.test.support.ts'

/** What a process is opened with: everything must survive JSON. */
export interface Opening {
  readonly target: string | readonly string[]
  readonly options: Pick<
    RedisStoreOptions,
    'prefix' | 'deadlineMs' | 'failureMode' | 'denyCache' | 'leases' | 'cluster' | 'sentinel'
  >
  readonly rules: Readonly<Record<string, Rule>>
  /** A file that grows by one byte for every check that `pour` got admitted, also when the process is killed. */
  readonly sinkFile?: string
}

/** What a process can be ordered to do. */
export interface ChildOrders {
  open: Opening
  /** Makes `calls` checks, `perTurn` in each turn of the event loop. Replies when all are decided. */
  burst: { readonly rule: string; readonly key: string; readonly calls: number; readonly perTurn: number }
  /** The same of several rules at once. */
  joint: { readonly requests: readonly RuleRequest[]; readonly calls: number; readonly perTurn: number }
  /** Checks again and again until `stop`. */
  pour: { readonly rule: string; readonly key: string; readonly atOnce: number; readonly pauseMs: number }
  stop: Record<string, never>
  /** Makes `times` reservations and keeps them. */
  hold: { readonly rule: string; readonly key: string; readonly times: number }
  /** Workers that take and return slots, and tell an oracle in Redis. */
  work: {
    readonly url: string
    readonly rule: string
    readonly key: string
    readonly workers: number
    readonly oracle: string
  }
  /** Sets the wall clock of the process off by so much. */
  jump: { readonly ms: number }
  /** What there is now; the reset is not that of a call that would be made now. */
  peek: { readonly rule: string; readonly key: string }
  stats: Record<string, never>
  close: Record<string, never>
}

/** What a process answers to each order. */
export interface ChildAnswers {
  open: unknown
  burst: Tally
  joint: Tally
  pour: unknown
  stop: Tally
  hold: number
  work: unknown
  jump: unknown
  peek: Pick<Decision, 'allowed' | 'remaining' | 'resetAt'>
  stats: RedisStoreStats
  close: unknown
}

/** An order on its way. */
export interface ChildOrder {
  readonly id: number
  readonly name: keyof ChildOrders
  readonly order: unknown
}

/** An answer on its way. */
export interface ChildAnswer {
  readonly id: number
  readonly answer?: unknown
  readonly error?: string
}

/** Records in a sorted set of the test that a worker is active, and the maximum ever active at once. */
export const ENTER = `
redis.call('ZADD', KEYS[1], 0, ARGV[1])
local now = redis.call('ZCARD', KEYS[1])
if now > tonumber(redis.call('GET', KEYS[1] .. ':most') or '0') then redis.call('SET', KEYS[1] .. ':most', now) end
redis.call('INCR', KEYS[1] .. ':times')
return now`

/** Records that a worker has stopped. */
export const LEAVE = `return redis.call('ZREM', KEYS[1], ARGV[1])`
