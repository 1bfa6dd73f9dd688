import { type Death, FakeClock, type RaceCall, runThreadRace, START_MICROS } from '@sluice/testing'
import { describe, expect, test } from 'vitest'
import { isSluiceError } from '../../errors.ts'
import { createLimiter } from '../../limiter/create-any-limiter.ts'
import type { Rule } from '../../rule/rule.ts'
import { attachSharedMemoryStore, attachWithFaults, sharedMemoryStore } from './shared-memory-store.ts'

const HOUR_RULES: Readonly<Record<string, Rule>> = {
  'token-bucket': { algorithm: 'token-bucket', capacity: 1000, refillPerSecond: 1 },
  'leaky-bucket-meter': { algorithm: 'leaky-bucket-meter', capacity: 1000, leakPerSecond: 1 },
  'leaky-bucket-queue': { algorithm: 'leaky-bucket-queue', capacity: 1000, ratePerSecond: 1 },
  'fixed-window': { algorithm: 'fixed-window', limit: 1000, window: '1h' },
  rollover: { algorithm: 'fixed-window', limit: 1000, window: '1h', rollover: true },
  'sliding-window-counter': { algorithm: 'sliding-window-counter', limit: 1000, window: '1h' },
  'sliding-window-log': { algorithm: 'sliding-window-log', limit: 1000, window: '1h' },
  segments: { algorithm: 'sliding-window-log', limit: 1000, window: '1h', segments: 60 },
  gcra: { limit: 1000, window: '1h' },
  hybrid: { algorithm: 'hybrid', limit: 900, window: '1h', burst: { capacity: 100, refillPerSecond: 1 } },
  concurrency: { algorithm: 'concurrency', limit: 1000, lease: '1h' },
}

const total = (approved: readonly (readonly number[])[], call = 0): number =>
  approved.reduce((sum, thread) => sum + (thread[call] ?? 0), 0)

const same = (threads: number, calls: readonly RaceCall[]): readonly (readonly RaceCall[])[] =>
  Array.from({ length: threads }, () => calls)

describe('threads that race for one key', () => {
  test.each(Object.entries(HOUR_RULES))('%s: exactly the limit is admitted', async (_name, rule) => {
    const store = sharedMemoryStore({ maxKeys: 64, maxStateSize: 3000 })
    const approved = await runThreadRace({
      handle: store.handle(),
      rules: { rule },
      threads: same(4, [{ requests: [{ rule: 'rule', key: 'hot' }], times: 1250 }]),
      instantMicros: START_MICROS,
    })
    expect(total(approved)).toBe(1000)
  })

  test('many keys: each admits its own limit, none lends to another', async () => {
    const store = sharedMemoryStore({ maxKeys: 1000 })
    const rules = { rule: { limit: 70, window: '1h' } } as const
    const calls = Array.from({ length: 50 }, (_, key) => ({ requests: [{ rule: 'rule', key: `k${key}` }], times: 40 }))
    const approved = await runThreadRace({
      handle: store.handle(),
      rules,
      threads: same(3, calls),
      instantMicros: START_MICROS,
    })
    for (const call of calls.keys()) expect(total(approved, call)).toBe(70)
  })
})

describe('a block with reset', () => {
  test('is one step for other threads: never is the counter fresh and the key not blocked', () => {
    const clock = new FakeClock()
    const store = sharedMemoryStore({ maxKeys: 64, clock })
    const rule: Rule = {
      windows: [
        { limit: 5, window: '1h' },
        { limit: 9, window: '2h' },
      ],
    }
    const other = createLimiter({ ...rule, store, clock })
    const seen: string[] = []
    const look = (step: string): void => {
      seen.push(`${step}: ${other.check('key').reason}`)
    }
    // Who meets a transaction that is undecided ends it, so each step is looked at once.
    const steps = new Set<string>()
    const onStep = (step: string): void => {
      if (!steps.has(step)) look(step)
      steps.add(step)
    }
    const blocking = createLimiter({ ...rule, store: attachWithFaults(store.handle(), { clock, onStep }), clock })
    other.check('key', { cost: 5 })
    look('before')
    blocking.block('key', '10s', { reset: true })
    look('after')
    clock.advance(10_000)
    look('at its end')
    expect(seen).toEqual([
      'before: limit',
      'first-word: limit',
      'all-words: limit',
      'committed: blocked',
      'after: blocked',
      'at its end: allowed',
    ])
  })
})

describe('several limits in one step', () => {
  test('all or nothing: what each limit counted is what was admitted, to the unit', async () => {
    const store = sharedMemoryStore({ maxKeys: 64, clock: new FakeClock() })
    const rules = {
      user: { limit: 3000, window: '1h' },
      tenant: { algorithm: 'fixed-window', limit: 1500, window: '1h' },
      global: { algorithm: 'token-bucket', capacity: 2000, refillPerSecond: 1 },
    } as const satisfies Record<string, Rule>
    const all: RaceCall = {
      requests: [
        { rule: 'user', key: 'u', cost: 2 },
        { rule: 'tenant', key: 't' },
        { rule: 'global', key: 'g' },
      ],
      times: 900,
    }
    // The other way round, so that threads meet head on.
    const back: RaceCall = { requests: all.requests.toReversed(), times: 900 }
    const globalOnly: RaceCall = { requests: [{ rule: 'global', key: 'g' }], times: 900 }
    const approved = await runThreadRace({
      handle: store.handle(),
      rules,
      threads: [[all, globalOnly], [back, globalOnly], [all], [back]],
      instantMicros: START_MICROS,
    })
    const joint = total(approved, 0)
    const single = total(approved, 1)
    const limiters = createLimiter({ rules, store })
    expect(limiters.limiter('user').peek('u').remaining).toBe(3000 - 2 * joint)
    expect(limiters.limiter('tenant').peek('t').remaining).toBe(1500 - joint)
    expect(limiters.limiter('global').peek('g').remaining).toBe(2000 - joint - single)
    // A caller was denied for lack of one of them, so at least one of them is used up.
    expect(joint + single === 2000 || joint === 1500).toBe(true)
  })
})

describe('keys that several threads bring at the same moment', () => {
  test('exist once: no charge goes to a duplicate that is never found again', async () => {
    const rules = { one: { limit: 500, window: '1h' }, two: { limit: 500, window: '1h' } } as const
    for (let round = 0; round < 8; round++) {
      const store = sharedMemoryStore({ maxKeys: 2000, clock: new FakeClock() })
      const keys = Array.from({ length: 25 }, (_, key) => `k${key}`)
      const calls = keys.map((key) => ({
        requests: [
          { rule: 'one', key },
          { rule: 'two', key },
        ],
        times: 3,
      }))
      await runThreadRace({ handle: store.handle(), rules, threads: same(3, calls), instantMicros: START_MICROS })
      const limiters = createLimiter({ rules, store })
      for (const key of keys) {
        const left = (['one', 'two'] as const).map((rule) => limiters.limiter(rule).peek(key).remaining)
        expect(left).toEqual([491, 491])
      }
    }
  })
})

describe('a thread that dies in the middle', () => {
  const rules = { one: { limit: 500, window: '1h' }, two: { limit: 500, window: '1h' } } as const
  const one = [{ rule: 'one', key: 'k' }]
  const both = [...one, { rule: 'two', key: 'k' }]

  /** Three threads, one of which dies; what all of them were granted, and what is left. */
  async function raceWithVictim(requests: RaceCall['requests'], death: Death) {
    const store = sharedMemoryStore({ maxKeys: 64, clock: new FakeClock() })
    const approved = await runThreadRace({
      handle: store.handle(),
      rules,
      // Fewer calls than units: the victim gets to its death whatever the others do.
      threads: same(3, [{ requests, times: 150 }]),
      instantMicros: START_MICROS,
      victim: { thread: 1, ...death },
    })
    const limiters = createLimiter({ rules, store })
    const left = requests.map(({ rule }) => limiters.limiter(rule as 'one').peek('k').remaining)
    return { granted: total(approved), left }
  }

  test.each([1, 2, 20])(
    'before its swap number %i of one limit: no thread waits for it, nothing is charged',
    async (commit) => {
      const { granted, left } = await raceWithVictim(one, { at: 'decided', commit })
      expect(left).toEqual([500 - granted])
    },
  )

  // The first commit brings new keys: four words. Later ones change two.
  const beforeTheEnd = (['decided', 'first-word', 'all-words'] as const).flatMap((at) =>
    [1, 20].map((commit) => ({ at, commit })),
  )

  test.each(beforeTheEnd)('at $at of commit $commit of two limits: it did not happen, for both', async (death) => {
    const { granted, left } = await raceWithVictim(both, death)
    expect(left).toEqual([500 - granted, 500 - granted])
  })

  test.each([1, 20])('committed for the %i. time and not finished: it happened, for both', async (commit) => {
    const { granted, left } = await raceWithVictim(both, { at: 'committed', commit })
    // The victim got no answer any more, but its last call was charged.
    expect(left).toEqual([499 - granted, 499 - granted])
  })
})

describe('room', () => {
  test('an exhausted key stays denied and a block stands while 50,000 new keys arrive', () => {
    const store = sharedMemoryStore({ maxKeys: 1000, clock: new FakeClock() })
    const limiter = createLimiter({ limit: 3, window: '1h', store })
    while (limiter.tryAcquire('exhausted'));
    limiter.block('blocked', '1h')
    for (let key = 0; key < 50_000; key++) limiter.tryAcquire(`new ${key}`)
    expect(limiter.tryAcquire('exhausted')).toBe(false)
    expect(limiter.check('blocked').reason).toBe('blocked')
    expect(store.stats().evictions).toBeGreaterThan(0)
  })

  test('when every key is used up, new ones share one overflow counter that enforces the limit', () => {
    const store = sharedMemoryStore({ maxKeys: 100, clock: new FakeClock() })
    const limiter = createLimiter({ limit: 1, window: '1h', store })
    let admitted = 0
    for (let key = 0; key < 5_000; key++) if (limiter.tryAcquire(`k${key}`)) admitted++
    // A place for each of the 480 slots that 100 keys are laid out for and the 240 of the overflow, each used once, and
    // one unit for all the others.
    expect(admitted).toBeLessThanOrEqual(480 + 240 + 1)
    expect(store.stats().overflowed).toBeGreaterThan(0)
  })

  test('expired keys make room without a trace', () => {
    const clock = new FakeClock()
    const store = sharedMemoryStore({ maxKeys: 100, clock })
    const limiter = createLimiter({ limit: 1, window: '1s', store })
    for (let round = 0; round < 20; round++) {
      for (let key = 0; key < 90; key++) expect(limiter.tryAcquire(`${round} ${key}`)).toBe(true)
      clock.advance(10_000)
    }
    expect(store.stats()).toEqual({ evictions: 0, overflowed: 0 })
  })

  test('no key is dropped for another while there are fewer than maxKeys, whichever threads bring them', () => {
    const clock = new FakeClock()
    const store = sharedMemoryStore({ maxKeys: 64, maxThreads: 9, clock })
    const limiters = Array.from({ length: 8 }, () =>
      createLimiter({ limit: 5, window: '1h', store: attachSharedMemoryStore(store.handle(), { clock }) }),
    )
    for (const [index, limiter] of limiters.entries()) limiter.tryAcquire(`first of ${index}`)
    for (let key = 0; key < 50; key++) limiters[0]!.tryAcquire(`of one ${key}`)
    const left = Array.from({ length: 50 }, (_, key) => limiters[1]!.peek(`of one ${key}`).remaining)
    expect(left).toEqual(left.map(() => 4))
    expect(store.stats()).toEqual({ evictions: 0, overflowed: 0 })
  })

  test('decisions over many new keys drop none of those that came before', async () => {
    const clock = new FakeClock()
    const store = sharedMemoryStore({ maxKeys: 4000, maxThreads: 2, clock })
    const requests = (round: number) => Array.from({ length: 32 }, (_, key) => ({ key: `${round} ${key}` }))
    for (let round = 0; round < 40; round++) {
      // Each in a thread of its own, which leaves its records to the next.
      const guest = attachSharedMemoryStore(store.handle(), { clock })
      const limiter = createLimiter({ limit: 10, window: '1h', store: guest })
      expect(limiter.checkAll(requests(round)).allowed).toBe(true)
      await guest.close()
    }
    const limiter = createLimiter({ limit: 10, window: '1h', store })
    for (let round = 0; round < 40; round++) {
      expect(requests(round).map(({ key }) => limiter.peek(key).remaining)).toEqual(requests(round).map(() => 9))
    }
    expect(store.stats()).toEqual({ evictions: 0, overflowed: 0 })
  })

  test('new keys of one decision get different slots, also in a full bucket', () => {
    const store = sharedMemoryStore({ maxKeys: 16, clock: new FakeClock() })
    const limiter = createLimiter({ limit: 10_000, window: '1h', store })
    for (let round = 0; round < 200; round++) {
      const requests = Array.from({ length: 8 }, (_, key) => ({ key: `${round} ${key}` }))
      expect(limiter.checkAll(requests).allowed).toBe(true)
    }
  })
})

describe('records', () => {
  test('what one thread frees, another can use', () => {
    const clock = new FakeClock()
    const store = sharedMemoryStore({ maxKeys: 2000, clock })
    const first = createLimiter({ limit: 5, window: '1h', store })
    const other = createLimiter({ limit: 5, window: '1h', store: attachSharedMemoryStore(store.handle(), { clock }) })
    for (let round = 0; round < 5; round++) {
      for (let key = 0; key < 1500; key++) expect(first.tryAcquire(`${round} ${key}`)).toBe(true)
      for (let key = 0; key < 1500; key++) other.reset(`${round} ${key}`)
    }
    expect(store.stats()).toEqual({ evictions: 0, overflowed: 0 })
  })

  test('what a closed thread held, others can use', async () => {
    const clock = new FakeClock()
    const store = sharedMemoryStore({ maxKeys: 2000, clock })
    const limiter = createLimiter({ limit: 5, window: '1h', store })
    for (let round = 0; round < 5; round++) {
      for (let key = 0; key < 1500; key++) expect(limiter.tryAcquire(`${round} ${key}`)).toBe(true)
      const guest = attachSharedMemoryStore(store.handle(), { clock })
      const cleaner = createLimiter({ limit: 5, window: '1h', store: guest })
      for (let key = 0; key < 1500; key++) cleaner.reset(`${round} ${key}`)
      await guest.close()
    }
    expect(store.stats()).toEqual({ evictions: 0, overflowed: 0 })
  })
})

describe('blocks', () => {
  test('on a full store a block is rejected with advice, without a wait', () => {
    const store = sharedMemoryStore({ maxKeys: 100, clock: new FakeClock() })
    const limiter = createLimiter({ limit: 1, window: '1h', store })
    for (let key = 0; key < 3000; key++) limiter.tryAcquire(`k${key}`)
    const blockAll = () => {
      for (let key = 0; key < 500; key++) limiter.block(`b${key}`, '1h')
    }
    expect(blockAll).toThrow(/SLUICE_STORE_FULL.*larger maxKeys/)
  })

  test('a block ends by itself, and can be lifted before', () => {
    const clock = new FakeClock()
    const store = sharedMemoryStore({ maxKeys: 100, clock })
    const limiter = createLimiter({ limit: 5, window: '1h', store })
    limiter.block('a', '10s')
    limiter.block('b', '10s')
    limiter.unblock('b')
    expect([limiter.check('a').reason, limiter.check('b').reason]).toEqual(['blocked', 'allowed'])
    clock.advance(9_999)
    expect(limiter.check('a').retryAfterMs).toBe(1)
    clock.advance(1)
    expect(limiter.check('a').allowed).toBe(true)
  })
})

describe('attaching', () => {
  test('a second view of the store sees the first one’s counts', () => {
    const clock = new FakeClock()
    const store = sharedMemoryStore({ maxKeys: 64, clock })
    const first = createLimiter({ limit: 2, window: '1h', store })
    const second = createLimiter({ limit: 2, window: '1h', store: attachSharedMemoryStore(store.handle(), { clock }) })
    expect([first.tryAcquire('k'), second.tryAcquire('k'), first.tryAcquire('k'), second.tryAcquire('k')]).toEqual([
      true,
      true,
      false,
      false,
    ])
  })

  test('threads come and go: a closed one leaves its number and its records to the next', async () => {
    const clock = new FakeClock()
    const store = sharedMemoryStore({ maxKeys: 16, maxThreads: 2, clock })
    for (let round = 0; round < 50; round++) {
      const other = attachSharedMemoryStore(store.handle(), { clock })
      const limiter = createLimiter({ limit: 1000, window: '1h', store: other })
      for (let call = 0; call < 20; call++) expect(limiter.tryAcquire(`k${call % 4}`)).toBe(true)
      await other.close()
    }
    const limiter = createLimiter({ limit: 1000, window: '1h', store })
    expect(limiter.peek('k1').remaining).toBe(1000 - 250)
  })

  test('one thread too many gets an error with advice', () => {
    const store = sharedMemoryStore({ maxKeys: 64, maxThreads: 1 })
    expect(() => attachSharedMemoryStore(store.handle())).toThrow(/SLUICE_STORE_FULL.*larger maxThreads/)
  })

  test('anything but a handle is rejected', () => {
    for (const wrong of [undefined, {}, { buffer: new ArrayBuffer(8) }, { buffer: new SharedArrayBuffer(1024) }]) {
      expect(() => attachSharedMemoryStore(wrong as never)).toThrow(/SLUICE_INVALID_OPTION/)
    }
  })

  test('a state that does not fit is rejected with the size that would', () => {
    const limiter = createLimiter({
      algorithm: 'sliding-window-log',
      limit: 10,
      window: '1m',
      store: sharedMemoryStore({ maxKeys: 64 }),
    })
    let error: unknown
    try {
      limiter.tryAcquire('k')
    } catch (thrown) {
      error = thrown
    }
    expect(isSluiceError(error, 'SLUICE_UNSUPPORTED')).toBe(true)
    expect(String(error)).toContain('maxStateSize: 20')
  })
})
