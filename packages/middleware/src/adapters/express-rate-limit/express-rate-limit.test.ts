import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Clock } from '@sluice/core'
import { attachSharedMemoryStore, isSluiceError, memoryStore, sharedMemoryStore } from '@sluice/core'
import { noteSpace } from '@sluice/core/internal'
import { deferredStore } from '@sluice/testing'
import express from 'express'
import { type AugmentedRequest, type ClientRateLimitInfo, type Options, rateLimit } from 'express-rate-limit'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { type SluiceRateLimitStore, type SluiceStoreOptions, sluiceStore } from './express-rate-limit.ts'

const MINUTE_MS = 60_000
const NOON = Date.UTC(2026, 10, 16, 12)

/** A clock that stands where it is put. */
class HandClock implements Clock {
  nowMs: number

  constructor(nowMs: number = NOON) {
    this.nowMs = nowMs
  }

  nowMicros(): number {
    return this.nowMs * 1000
  }
}

/** Counts by minutes, as simply as can be. */
class PlainCount {
  readonly #clock: HandClock
  readonly #counts = new Map<string, number>()

  constructor(clock: HandClock) {
    this.#clock = clock
  }

  hits(key: string): number {
    return this.#counts.get(this.#nameOf(key)) ?? 0
  }

  increment(key: string): void {
    this.#counts.set(this.#nameOf(key), this.hits(key) + 1)
  }

  decrement(key: string): void {
    this.#counts.set(this.#nameOf(key), Math.max(0, this.hits(key) - 1))
  }

  resetKey(key: string): void {
    this.#counts.delete(this.#nameOf(key))
  }

  #nameOf(key: string): string {
    return `${Math.floor(this.#clock.nowMs / MINUTE_MS)}/${key}`
  }
}

const STEP = fc.record({
  what: fc.constantFrom('increment', 'increment', 'decrement', 'resetKey', 'wait'),
  key: fc.constantFrom('a', 'b'),
  ms: fc.integer({ min: 0, max: 40_000 }),
})

/** What answers a request: its status, and when. */
type Answering = (path: string) => number | Promise<number>

interface Site {
  readonly limiter: ReturnType<typeof rateLimit>
  /** What express-rate-limit complained about. */
  readonly complaints: unknown[]
  get(path?: string, headers?: Record<string, string>): Promise<Response>
  /** The statuses of `count` requests, one after another. */
  statuses(times: number, path?: string): Promise<number[]>
}

async function listen(app: express.Express): Promise<string> {
  const server = await new Promise<Server>((resolve) => {
    const listening: Server = app.listen(0, '127.0.0.1', () => resolve(listening))
  })
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A real Express site behind the real express-rate-limit. */
async function startSite(options: Partial<Options>, answering: Answering = () => 200): Promise<Site> {
  const complaints: unknown[] = []
  const complain = (error: unknown): void => void complaints.push(error)
  const limiter = rateLimit({ windowMs: MINUTE_MS, logger: { error: complain, warn: complain }, ...options })
  const app = express()
  app.use(limiter)
  app.use(
    async (request, response) =>
      void response.status(await answering(request.path)).json((request as AugmentedRequest)['rateLimit']),
  )
  app.use(((error, _request, response, _next) => {
    response.status(500).json({ code: error.code })
  }) satisfies express.ErrorRequestHandler)
  const url = await listen(app)
  const get: Site['get'] = (path = '/', headers = {}) =>
    fetch(`${url}${path}`, { headers: { connection: 'close', ...headers } })
  const statuses: Site['statuses'] = async (times, path) => {
    const seen: number[] = []
    for (let time = 0; time < times; time++) {
      const response = await get(path)
      await response.arrayBuffer()
      seen.push(response.status)
    }
    return seen
  }
  return { limiter, complaints, get, statuses }
}

/** A store that has got its window, as express-rate-limit passes it. */
function started(options: SluiceStoreOptions = {}, windowMs: number = MINUTE_MS): SluiceRateLimitStore {
  const store = sluiceStore(options)
  store.init({ windowMs })
  return store
}

async function hits(store: SluiceRateLimitStore, key = 'a'): Promise<number> {
  return (await store.get(key))?.totalHits ?? 0
}

function thrown(run: () => unknown): unknown {
  try {
    run()
  } catch (error) {
    return error
  }
  throw new Error('it did not throw')
}

afterEach(() => {
  vi.useRealTimers()
})

describe('express-rate-limit on a store of Sluice', () => {
  let clock: HandClock

  beforeEach(() => {
    clock = new HandClock()
    // express-rate-limit looks at the wall clock itself.
    vi.useFakeTimers({ toFake: ['Date'], now: clock.nowMs })
  })

  function moveTo(nowMs: number): void {
    clock.nowMs = nowMs
    vi.setSystemTime(nowMs)
  }

  it('limits as it did, in exact numbers, and complains of nothing', async () => {
    const site = await startSite({ limit: 3, standardHeaders: 'draft-8', store: sluiceStore({ clock }) })
    const responses = [await site.get(), await site.get(), await site.get(), await site.get(), await site.get()]
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 429, 429])
    const headers = responses.map((response) => response.headers)
    expect(headers.map((fields) => fields.get('x-ratelimit-remaining'))).toEqual(['2', '1', '0', '0', '0'])
    expect(headers.map((fields) => fields.get('ratelimit')?.split(';')[1])).toEqual([
      ' r=2',
      ' r=1',
      ' r=0',
      ' r=0',
      ' r=0',
    ])
    expect(headers.map((fields) => fields.get('x-ratelimit-reset'))).toEqual(Array(5).fill(`${NOON / 1000 + 60}`))
    expect(headers.map((fields) => fields.get('retry-after'))).toEqual([null, null, null, '60', '60'])
    expect(await responses[2]!.json()).toMatchObject({ limit: 3, used: 3, remaining: 0 })
    expect(site.complaints).toEqual([])
  })

  it('takes a limit that depends on the request', async () => {
    const limit = (request: express.Request): number => Number(request.headers['x-limit'])
    const site = await startSite({ limit, store: sluiceStore({ clock }) })
    const asked = [2, 2, 2, 5, 5, 2]
    const statuses: number[] = []
    for (const most of asked) statuses.push((await site.get('/', { 'x-limit': String(most) })).status)
    // All six are hits of one client, also the ones that were denied.
    expect(statuses).toEqual([200, 200, 429, 200, 200, 429])
    expect(site.complaints).toEqual([])
  })

  it('counts nothing that failed with skipFailedRequests, not even its own denials', async () => {
    const store = sluiceStore({ clock })
    const site = await startSite({ limit: 2, skipFailedRequests: true, store }, (path) => (path === '/bad' ? 500 : 200))
    expect(await site.statuses(5, '/bad')).toEqual([500, 500, 500, 500, 500])
    expect(await site.statuses(5)).toEqual([200, 200, 429, 429, 429])
    await vi.waitFor(() => expect(hits(store, '127.0.0.1')).resolves.toBe(2))
    expect(site.complaints).toEqual([])
  })

  it('counts nothing that succeeded with skipSuccessfulRequests', async () => {
    const store = sluiceStore({ clock })
    const site = await startSite({ limit: 2, skipSuccessfulRequests: true, store }, (path) =>
      path === '/bad' ? 401 : 200,
    )
    expect(await site.statuses(4)).toEqual([200, 200, 200, 200])
    await vi.waitFor(() => expect(hits(store, '127.0.0.1')).resolves.toBe(0))
    expect(await site.statuses(3, '/bad')).toEqual([401, 401, 429])
    expect(site.complaints).toEqual([])
  })

  it('does not give a hit back to the window after its own', async () => {
    moveTo(NOON + 59_000)
    const store = sluiceStore({ clock })
    const slow = Promise.withResolvers<number>()
    const site = await startSite({ limit: 9, skipFailedRequests: true, store }, (path) =>
      path === '/slow' ? slow.promise : 200,
    )
    const late = site.get('/slow')
    await vi.waitFor(() => expect(hits(store, '127.0.0.1')).resolves.toBe(1))
    moveTo(NOON + 61_000)
    expect(await site.statuses(2)).toEqual([200, 200])
    slow.resolve(500)
    expect((await late).status).toBe(500)
    // A failure of this window is given back, and by then the one before had its chance.
    expect((await site.get('/slow')).status).toBe(500)
    await vi.waitFor(() => expect(hits(store, '127.0.0.1')).resolves.toBe(2))
    expect(site.complaints).toEqual([])
  })

  it('resets and shows one client through the middleware', async () => {
    const site = await startSite({ limit: 2, store: sluiceStore({ clock }) })
    expect(await site.statuses(3)).toEqual([200, 200, 429])
    expect(await site.limiter.getKey('127.0.0.1')).toMatchObject({ totalHits: 3 })
    site.limiter.resetKey('127.0.0.1')
    expect(await site.limiter.getKey('127.0.0.1')).toBeUndefined()
    expect(await site.statuses(1)).toEqual([200])
  })

  it('lets several limiters see one request on one store, each with its prefix', async () => {
    const store = memoryStore({ clock })
    const complaints: unknown[] = []
    const logger = {
      error: (error: unknown) => complaints.push(error),
      warn: (error: unknown) => complaints.push(error),
    }
    const app = express()
    app.use(rateLimit({ limit: 9, logger, store: sluiceStore({ store, prefix: 'site' }) }))
    app.use(rateLimit({ limit: 2, logger, store: sluiceStore({ store, prefix: 'login' }) }))
    app.use((_request, response) => void response.json({}))
    const url = await listen(app)
    const statuses: number[] = []
    for (let time = 0; time < 3; time++) statuses.push((await fetch(url, { headers: { connection: 'close' } })).status)
    expect(statuses).toEqual([200, 200, 429])
    expect(complaints).toEqual([])
  })

  it('says what is wrong with the window at every hit, because express-rate-limit goes on', async () => {
    const site = await startSite({ windowMs: -1, store: sluiceStore({ clock }) })
    expect(site.complaints.map((error) => isSluiceError(error, 'SLUICE_INVALID_DURATION'))).toEqual([true])
    const response = await site.get()
    expect([response.status, await response.json()]).toEqual([500, { code: 'SLUICE_INVALID_DURATION' }])
  })
})

describe('sluiceStore', () => {
  it('counts hits in windows of the clock, of any length', () => {
    const clock = new HandClock(NOON + 59_999)
    const store = started({ clock })
    expect(store.increment('a')).toEqual({ totalHits: 1, resetTime: new Date(NOON + 60_000) })
    clock.nowMs++
    expect(store.increment('a')).toEqual({ totalHits: 1, resetTime: new Date(NOON + 120_000) })
    expect(store.increment('b')).toEqual({ totalHits: 1, resetTime: new Date(NOON + 120_000) })

    const yearMs = 365 * 86_400_000
    const yearly = started({ clock, prefix: 'yearly' }, yearMs)
    const end = Math.ceil(clock.nowMs / yearMs) * yearMs
    for (const totalHits of [1, 2, 3]) expect(yearly.increment('a')).toEqual({ totalHits, resetTime: new Date(end) })
    clock.nowMs = end - 1
    expect(yearly.increment('a')).toMatchObject({ totalHits: 4 })
    clock.nowMs = end
    expect(yearly.increment('a')).toMatchObject({ totalHits: 1 })
  })

  it('agrees with a plain count, whatever is done (property)', () => {
    fc.assert(
      fc.property(fc.array(STEP, { maxLength: 60 }), (steps) => {
        const clock = new HandClock()
        const store = started({ clock })
        const plain = new PlainCount(clock)
        for (const { what, key, ms } of steps) {
          if (what === 'wait') {
            clock.nowMs += ms
            continue
          }
          void store[what](key)
          plain[what](key)
          const info = store.get(key) as ClientRateLimitInfo | undefined
          expect(info?.totalHits ?? 0).toBe(plain.hits(key))
        }
      }),
    )
  })

  it('gives nothing back while its clock and that of the store are in different windows', async () => {
    const here = new HandClock(NOON + 59_000)
    const there = new HandClock(NOON + 59_000)
    const store = started({ store: memoryStore({ clock: there }), clock: here })
    store.increment('a')
    there.nowMs = NOON + 61_000
    store.increment('a')
    store.increment('a')
    // By the clock here the first window is not over: it may be that hit which is to be given back.
    store.decrement('a')
    expect(await hits(store)).toBe(2)
    here.nowMs = NOON + 60_000
    store.decrement('a')
    expect(await hits(store)).toBe(1)
    here.nowMs = NOON + 120_000
    store.decrement('a')
    expect(await hits(store)).toBe(1)
  })

  it('counts together with others on a store that several threads share', () => {
    const shared = sharedMemoryStore({ maxKeys: 64 })
    const [one, other] = [started({ store: shared }), started({ store: attachSharedMemoryStore(shared.handle()) })]
    expect(one.localKeys).toBe(false)
    const seen = [one, other, one, other].map((store) => (store.increment('a') as ClientRateLimitInfo).totalHits)
    expect(seen).toEqual([1, 2, 3, 4])
  })

  it('counts more hits than any limit has for a key that is blocked on the store', () => {
    const store = memoryStore()
    const counter = started({ store, prefix: 'login' })
    counter.increment('a')
    store.block('login', 'a', 60_000_000)
    expect(counter.increment('a')).toMatchObject({ totalHits: 9_000_000_001 })
    store.block('login', 'a', 0)
    expect(counter.increment('a')).toMatchObject({ totalHits: 2 })
  })

  it('forgets all hits of a store of its own, and leaves others alone', async () => {
    const own = started()
    expect(own.localKeys).toBe(true)
    own.increment('a')
    own.resetAll?.()
    expect(await hits(own)).toBe(0)
    expect(own.increment('a')).toMatchObject({ totalHits: 1 })
    expect(started({ store: memoryStore() }).resetAll).toBeUndefined()
  })

  it('ends, leaves a store that was passed in open, and frees its prefix', async () => {
    const store = memoryStore()
    const first = started({ store })
    first.increment('a')
    await first.shutdown()
    await first.shutdown()
    expect(
      isSluiceError(
        thrown(() => first.increment('a')),
        'SLUICE_CLOSED',
      ),
    ).toBe(true)
    expect(started({ store }).increment('a')).toMatchObject({ totalHits: 2 })

    const own = started()
    await own.shutdown()
    expect(
      isSluiceError(
        thrown(() => own.increment('a')),
        'SLUICE_CLOSED',
      ),
    ).toBe(true)
  })

  it.each([
    ['an option it has not', { windowMs: 1000 }, 'SLUICE_INVALID_OPTION', '"windowMs"'],
    ['options that are none', 7, 'SLUICE_INVALID_OPTION', 'received 7'],
    ['a store that is none', { store: new Map() }, 'SLUICE_INVALID_OPTION', '"store"'],
    ['a store for options', memoryStore(), 'SLUICE_INVALID_OPTION', 'Write: sluiceStore({ store }).'],
    ['a prefix that cannot be', { prefix: 'my limiter' }, 'SLUICE_INVALID_OPTION', '"my limiter"'],
  ])('rejects %s', (_, options, code, part) => {
    const error = thrown(() => sluiceStore(options as SluiceStoreOptions)) as Error
    expect(error).toMatchObject({ code, message: expect.stringContaining(part) })
  })

  it('rejects a prefix that another limiter uses on the store', () => {
    const store = memoryStore()
    sluiceStore({ store })
    sluiceStore({ store, prefix: 'login' })
    expect(
      isSluiceError(
        thrown(() => sluiceStore({ store })),
        'SLUICE_RULE_CONFLICT',
      ),
    ).toBe(true)
    sluiceStore({ store: memoryStore() })
  })

  it('reports a prefix that another limiter uses on a store that may be the same', async () => {
    const warnings = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    const remote = (space: string) => {
      const store = deferredStore(memoryStore())
      noteSpace(store, space)
      return store
    }
    const first = sluiceStore({ store: remote('orders') })
    sluiceStore({ store: remote('users') })
    sluiceStore({ store: remote('orders'), prefix: 'login' })
    await first.shutdown()
    await first.shutdown()
    sluiceStore({ store: remote('orders') })
    expect(warnings).not.toHaveBeenCalled()
    sluiceStore({ store: remote('orders') })
    sluiceStore({ store: remote('orders') })
    expect(warnings.mock.calls).toEqual([
      [
        expect.stringContaining('The prefix "express-rate-limit" is not unique.'),
        { type: 'SluiceWarning', code: 'SLUICE_USE_SHARED_NAME' },
      ],
    ])
  })

  it('wants to know its window first', () => {
    const error = thrown(() => sluiceStore().increment('a')) as Error
    expect(error.message).toContain('init({ windowMs })')
  })
})
