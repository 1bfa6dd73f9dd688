import type { Limiter, Rule } from '@sluice/core'
import { createLimiter } from '@sluice/core'
import type { RedisStore } from '@sluice/store-redis'
import { redisStore } from '@sluice/store-redis'
import type { Burst } from '../tests/test-bed.ts'
import { approvalsOf } from '../tests/test-bed.ts'
import type { Reply } from './callers.ts'
import { EXACT_STORE, requireStoreAnswer } from './exact-redis-options.ts'

// A process of the pool. It answers each order with one reply, and a burst with two: when it is ready, and when it is
// done.

/** What a process works on until `detach`. */
export interface RedisSubject {
  readonly rule: Rule
  readonly url: string
  /** Begins every key in Redis. */
  readonly prefix: string
}

/** Orders for a process. A burst is made at its instant, from `go` on. */
export type ProcessOrder =
  | { readonly kind: 'attach'; readonly subject: RedisSubject }
  | { readonly kind: 'burst'; readonly burst: Burst; readonly atMicros: number }
  | { readonly kind: 'go' }
  | { readonly kind: 'detach' }

/** What a process answers: a reply, or what kept it from one. */
export type ProcessAnswer = Reply | { readonly kind: 'failed'; readonly problem: string }

/**
 * Requests that a process has in flight at once. They travel together, so a process makes its requests in many small
 * calls, and those of all processes alternate; in one large call each, there would be hardly a race.
 */
const REQUESTS_AT_ONCE = 4

interface Attached {
  readonly store: RedisStore
  readonly limiter: Limiter<'async'>
}

let atMicros = 0
let attached: Attached | undefined
let prepared: Burst | undefined

function reply(kind: Reply['kind'], approvedPerNode: readonly number[] = []): void {
  say({ kind, approvedPerNode })
}

function say(answer: ProcessAnswer): void {
  process.send?.(answer)
}

async function attach({ rule, url, prefix }: RedisSubject): Promise<void> {
  // The process that started this one looks at the server, and tells what is wrong with it.
  const onWarning = (): void => undefined
  const store = redisStore(url, { ...EXACT_STORE, prefix, clock: { nowMicros: () => atMicros }, onWarning })
  attached = { store, limiter: createLimiter<'async'>({ ...rule, store }) }
  if (!(await store.ready(EXACT_STORE.deadlineMs))) throw new Error('There is no connection to Redis.')
}

async function makeRequests(): Promise<number[]> {
  if (attached === undefined || prepared === undefined) throw new Error('A burst was released before it was prepared.')
  const { limiter } = attached
  return await approvalsOf(
    prepared,
    REQUESTS_AT_ONCE,
    async (node) => requireStoreAnswer(await limiter.check(node)).allowed,
  )
}

async function detach(): Promise<void> {
  await attached?.limiter.close()
  await attached?.store.close()
  attached = undefined
}

async function execute(order: ProcessOrder): Promise<void> {
  switch (order.kind) {
    case 'attach':
      await attach(order.subject)
      return reply('attached')
    case 'burst':
      atMicros = order.atMicros
      prepared = order.burst
      return reply('ready')
    case 'go':
      return reply('done', await makeRequests())
    case 'detach':
      await detach()
      return reply('detached')
  }
}

process.on('message', (order: ProcessOrder) => {
  execute(order).catch((error: unknown) => {
    say({ kind: 'failed', problem: error instanceof Error ? error.message : String(error) })
  })
})

// The parent process has ended: the connection to Redis must not keep it alive.
process.on('disconnect', () => process.exit())
