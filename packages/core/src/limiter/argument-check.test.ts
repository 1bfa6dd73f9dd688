import { FakeClock } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { isSluiceError } from '../errors.ts'
import { memoryStore } from '../store/memory/memory-store.ts'
import { attachSharedMemoryStore, sharedMemoryStore } from '../store/shared/shared-memory-store.ts'
import { createLimiter } from './create-any-limiter.ts'

const clock = new FakeClock()
const limiter = createLimiter({ limit: 10, window: '1m', clock })
const set = createLimiter({ rules: { perUser: { limit: 10, window: '1m' } }, clock })

/** What a call that is not typed is answered with. */
async function answerTo(call: (args: never) => unknown): Promise<string> {
  try {
    await call(undefined as never)
  } catch (error) {
    if (isSluiceError(error, 'SLUICE_INVALID_OPTION')) return error.message
    throw error
  }
  throw new Error('nothing was thrown')
}

const untyped = limiter as unknown as Record<string, (...args: unknown[]) => unknown>
const untypedSet = set as unknown as Record<string, (...args: unknown[]) => unknown>

const MISTAKES: Readonly<Record<string, readonly [call: () => unknown, answer: string]>> = {
  'a cost in place of options': [
    () => untyped['check']!('a', 2),
    'the options of a check cannot be used; received 2; expected an object such as { cost: 2 }',
  ],
  'options that are null': [() => untyped['peek']!('a', null), 'received null; expected an object such as { cost: 2 }'],
  'a misspelt option': [
    () => untyped['check']!('a', { costs: 2 }),
    'a check has no option "costs"; expected only cost, partial, entitled. Did you mean "cost"?',
  ],
  'the word of another library': [() => untyped['check']!('a', { points: 2 }), 'Did you mean "cost"?'],
  'a flag that is a string': [
    () => untyped['check']!('a', { partial: 'no' }),
    '"partial" cannot be used; received "no"; expected true or false',
  ],
  'a wait by another name': [
    () => untyped['acquire']!('a', { maxWaitMs: 50 }),
    'acquire has no option "maxWaitMs"; expected only cost, entitled, signal, maxWait. Did you mean "maxWait"?',
  ],
  'a controller in place of its signal': [
    () => untyped['acquire']!('a', { signal: new AbortController() }),
    'expected an AbortSignal, such as AbortSignal.timeout(1000). It is an AbortController: pass its "signal".',
  ],
  'a signal that is none': [() => untyped['acquire']!('a', { signal: 1000 }), '"signal" cannot be used; received 1000'],
  'a reservation with a misspelt option': [
    () => untyped['reserve']!('a', { expireAfter: '1m' }),
    'Did you mean "expiresAfter"?',
  ],
  'no requests': [
    () => untyped['checkAll']!(),
    'the requests of checkAll cannot be used; received undefined; expected a list such as [{ key: "user:1", cost: 2 }]',
  ],
  'requests that are no list': [() => untyped['checkAll']!({ key: 'a' }), 'received an object with key'],
  'keys in place of requests': [
    () => untyped['checkAll']!(['a', 'b']),
    'the options of a request of checkAll cannot be used; received "a"',
  ],
  'a request with a misspelt field': [
    () => untyped['checkAll']!([{ key: 'a', costs: 3 }]),
    'a request of checkAll has no option "costs"; expected only key, cost. Did you mean "cost"?',
  ],
  'a request of a set with a misspelt field': [
    () => untypedSet['checkAll']!([{ rule: 'perUser', key: 'a', weight: 3 }]),
    'expected only rule, key, cost. Did you mean "cost"?',
  ],
  'a limiter of several rules with a single key': [
    () => untypedSet['peekAll']!('a'),
    'received "a"; expected a list such as [{ rule:',
  ],
  'a key in place of a decision': [
    () => untyped['refund']!('a'),
    'the decision to refund is invalid; received "a"; expected the decision that charged it. Keep what check()',
  ],
  'nothing in place of a decision': [() => untypedSet['refund']!(), 'received undefined; expected the decision'],
  'a promise of a decision': [() => untyped['refund']!(Promise.resolve()), 'It is a promise: await it first.'],
  'a block with a misspelt option': [
    () => untyped['block']!('a', '1m', { rest: true }),
    'block has no option "rest"; expected only reset. Did you mean "reset"?',
  ],
  'a block with a flag that is none': [
    () => untyped['block']!('a', '1m', { reset: 'yes' }),
    '"reset" of block cannot be used; received "yes"; expected true or false',
  ],
  'a flag in place of the options of a block': [
    () => untyped['block']!('a', '1m', true),
    'the options of block cannot be used; received true; expected an object such as { reset: true }',
  ],
  'a memory store with a misspelt option': [
    () => memoryStore({ maxkeys: 5 } as never),
    'the memory store has no option "maxkeys"; expected only maxKeys, clock, random. Did you mean "maxKeys"?',
  ],
  'a number in place of the options of a store': [
    () => memoryStore(5 as never),
    'the options of the memory store cannot be used; received 5; expected an object such as { maxKeys: 100000 }',
  ],
  'a shared memory store with a misspelt option': [
    () => sharedMemoryStore({ maxThread: 5 } as never),
    'Did you mean "maxThreads"?',
  ],
  'a thread that attaches with options of the store': [
    () => attachSharedMemoryStore(sharedMemoryStore({ maxKeys: 16 }).handle(), { maxKeys: 16 } as never),
    'attachSharedMemoryStore has no option "maxKeys"; expected only clock',
  ],
  'a function in place of a clock': [
    () => createLimiter({ limit: 1, window: '1m', clock: (() => 4) as never }),
    '"clock" cannot be used; received a function; expected an object with the method nowMicros, such as',
  ],
  'chance of another form': [() => memoryStore({ random: (() => 4) as never }), '"random" cannot be used'],
  'timers of another form': [
    () => createLimiter({ limit: 1, window: '1m', timers: globalThis as never }),
    '"timers" cannot be used',
  ],
}

describe('calls that cannot be meant', () => {
  it.each(Object.entries(MISTAKES))('%s', async (_, [call, answer]) => {
    expect(await answerTo(call)).toContain(answer)
  })

  it('cost nothing', async () => {
    for (const [call] of Object.values(MISTAKES)) await answerTo(call)
    expect(limiter.peek('a').remaining).toBe(10)
    expect(set.limiter('perUser').peek('a').remaining).toBe(10)
  })
})

describe('adjust', () => {
  it.each([1.5, Number.NaN, Number.POSITIVE_INFINITY, '3', undefined, null])('rejects %s by code', (units) => {
    expect(() => untyped['adjust']!('a', units)).toThrow(
      expect.objectContaining({
        code: 'SLUICE_INVALID_COST',
        message: expect.stringContaining('expected a whole number: above 0 takes units, below 0 gives them back'),
      }),
    )
  })

  it('says what to do instead where units cannot be adjusted', () => {
    const slots = createLimiter({ algorithm: 'concurrency', limit: 2, lease: '1m', clock })
    expect(() => slots.adjust('a', -1)).toThrow('Call release() of a reservation, or reset(key) to free all slots.')
    const queue = createLimiter({ algorithm: 'leaky-bucket-queue', capacity: 2, ratePerSecond: 1, clock })
    expect(() => queue.adjust('a', -1)).toThrow('Use refund(decision) for the last call in the queue, or reset(key).')
  })

  it('changes nothing under a rule that does not limit', () => {
    const off = createLimiter({ limit: 'off', window: '1m', clock })
    expect(off.adjust('a', 5)).toEqual({ outcome: 'settled', corrected: 0 })
  })
})
