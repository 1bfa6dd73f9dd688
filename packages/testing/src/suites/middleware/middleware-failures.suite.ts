import type { Store } from '@sluice/core'
import { memoryStore } from '@sluice/core'
import { fallbackStore, storeUnavailable } from '@sluice/core/store'
import { describe, expect, it } from 'vitest'
import { deferredStore } from '../../models/reference-store.ts'
import type { MiddlewareHarness, SuiteOptions } from './middleware-fixture.ts'
import { openFixture } from './middleware-fixture.ts'

/** Frameworks add a character set where they write JSON themselves. */
const PROBLEM = expect.stringMatching(/^application\/problem\+json(?:;|$)/)

const LIMIT = { limit: 5, window: '1h' } as const

/** A store that cannot be reached. */
function absentStore(): Store<'async'> {
  const unreachable = () => Promise.reject(storeUnavailable({ because: 'unreachable', problem: 'there is no store' }))
  return { ...deferredStore(memoryStore()), decide: unreachable, settle: unreachable }
}

function fail(): never {
  throw new Error('thrown by an option, on purpose')
}

/** What becomes of requests when something goes wrong. */
export function failureTests(harness: MiddlewareHarness): void {
  describe('an error', () => {
    it.each<[string, SuiteOptions]>([
      ['in the key', { key: fail }],
      ['in the key, later', { key: () => Promise.resolve().then(fail) }],
      ['in the cost', { cost: fail }],
      ['in the cost, later', { cost: () => Promise.resolve().then(fail) }],
      ['in skip', { skip: fail }],
      ['in skip, later', { skip: () => Promise.resolve().then(fail) }],
      ['in the callback for decisions', { onDecision: fail }],
      ['for a cost that is none', { cost: () => -1 }],
      ['of a store that does not answer', { store: absentStore() }],
    ])('%s goes to the error handling of the framework, and never lets a request through', async (_where, options) => {
      const fixture = await openFixture(harness, { limiters: [{ ...LIMIT, ...options }] })
      expect((await fixture.get('/ok')).status).toBe(500)
      expect(fixture.calls).toEqual([])
    })
  })

  describe('an unavailable store', () => {
    it('denies with 503 when it is closed then', async () => {
      const store = fallbackStore(absentStore(), { failureMode: 'closed' })
      const fixture = await openFixture(harness, { limiters: [{ ...LIMIT, store, name: 'reads' }] })
      const { status, headers, body } = await fixture.get('/ok')
      expect(status).toBe(503)
      expect(headers).toMatchObject({ 'content-type': PROBLEM, 'cache-control': 'no-store' })
      expect(JSON.parse(body)).toMatchObject({
        type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
        status: 503,
        'violated-policies': ['reads'],
      })
      expect(fixture.calls).toEqual([])
      await store.close()
    })

    it('lets requests through when it is open then', async () => {
      const store = fallbackStore(absentStore(), { failureMode: 'open' })
      const fixture = await openFixture(harness, { limiters: [{ ...LIMIT, store }] })
      for (let call = 0; call < 10; call++) expect((await fixture.get('/ok')).status).toBe(200)
      await store.close()
    })

    it('announces its limit and not what is left when it is open then', async () => {
      const store = fallbackStore(absentStore(), { failureMode: 'open' })
      const fixture = await openFixture(harness, { limiters: [{ ...LIMIT, store, name: 'reads', headers: 'both' }] })
      const { status, headers } = await fixture.get('/ok')
      expect([status, headers['x-ratelimit-limit'], headers['ratelimit-policy']]).toEqual([
        200,
        '5',
        '"reads";q=5;w=3600',
      ])
      const unknown = ['x-ratelimit-remaining', 'x-ratelimit-reset', 'x-ratelimit-reset-after', 'ratelimit']
      expect(Object.keys(headers).filter((name) => unknown.includes(name))).toEqual([])
      expect(fixture.calls).toMatchObject([{ decision: { allowed: true, remaining: null } }])
      await store.close()
    })

    it('leaves it to this process when it is local then', async () => {
      const store = fallbackStore(absentStore(), { failureMode: 'local' })
      const fixture = await openFixture(harness, { limiters: [{ ...LIMIT, store }] })
      for (let call = 0; call < 5; call++) expect((await fixture.get('/ok')).status).toBe(200)
      expect((await fixture.get('/ok')).status).toBe(429)
      await store.close()
    })
  })

  describe('closing a limiter', () => {
    it('ends it, and may be done again', async () => {
      const fixture = await openFixture(harness, { limiters: [LIMIT] })
      expect((await fixture.get('/ok')).status).toBe(200)
      await fixture.app.closeLimiters()
      expect((await fixture.get('/ok')).status).toBe(500)
      await fixture.app.closeLimiters()
    })

    it('leaves a store open that it was given', async () => {
      const store = memoryStore()
      const fixture = await openFixture(harness, { limiters: [{ ...LIMIT, store }] })
      await fixture.get('/ok')
      await fixture.app.closeLimiters()
      expect(store.stats().keys).toBe(1)
      expect(() => store.reset([], 'key')).not.toThrow()
    })
  })
}
