import { createLimiter, memoryStore } from '@sluice/core'
import { PolicyEngine } from '@sluice/core/policy'
import { fallbackStore } from '@sluice/core/store'
import { deferredStore } from '@sluice/testing'
import { Hono } from 'hono'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { rateLimit as limitFetch } from './adapters/fetch/fetch.ts'
import { rateLimit as limitHono } from './adapters/hono/hono.ts'

// What Cloudflare Workers do not allow at module scope: random values, timers, I/O. It is allowed once a request is
// handled.

const FORBIDDEN = ['setTimeout', 'setInterval', 'setImmediate', 'fetch', 'crypto'] as const

beforeEach(() => {
  const forbid = (): never => {
    throw new Error('Disallowed operation called within global scope.')
  }
  for (const name of FORBIDDEN) {
    vi.stubGlobal(name, name === 'crypto' ? { getRandomValues: forbid, randomUUID: forbid } : forbid)
  }
})

afterEach(() => void vi.unstubAllGlobals())

/** A request is handled from here on. */
const handle = (): void => void vi.unstubAllGlobals()

it('limiters are made without random values, timers or I/O', async () => {
  const rule = { limit: 2, window: '1h' } as const
  const limiter = createLimiter(rule)
  const limits = createLimiter({ rules: { read: rule } })
  const slots = createLimiter({ algorithm: 'concurrency', limit: 2, lease: '10s' })
  const guarded = createLimiter({ ...rule, store: fallbackStore(deferredStore(memoryStore())) })
  const engine = new PolicyEngine({
    store: memoryStore(),
    ruleSet: { rules: [{ resource: '*', dimension: 'user', ...rule }] },
  })
  handle()
  expect(limiter.check('key').remaining).toBe(1)
  expect(limits.limiter('read').check('key').remaining).toBe(1)
  expect(slots.check('key').remaining).toBe(1)
  expect((await guarded.check('key')).remaining).toBe(1)
  expect(engine.check({ resource: '/x', user: 'ann' }).remaining).toBe(1)
})

it('a limited handler of fetch is made without them', async () => {
  const handler = limitFetch({ limit: 1, window: '1h', key: () => 'all' })(() => new Response('hello'))
  handle()
  const statuses = [await handler(new Request('http://localhost/')), await handler(new Request('http://localhost/'))]
  expect(statuses.map(({ status }) => status)).toEqual([200, 429])
})

it('a limited app of Hono is made without them', async () => {
  const app = new Hono()
  app.use(limitHono({ limit: 1, window: '1h', key: () => 'all' }))
  app.get('/', (c) => c.text('hello'))
  handle()
  expect([(await app.request('/')).status, (await app.request('/')).status]).toEqual([200, 429])
})
