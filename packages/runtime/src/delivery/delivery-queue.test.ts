import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Sleep } from '../clock-and-random.ts'
import type {
  DeliveryAttempt,
  DeliveryEvent,
  DeliveryQueueOptions,
  DeliveryRecord,
  DeliveryStore,
} from './delivery-queue.ts'
import { DeliveryQueue } from './delivery-queue.ts'

/** A clock that moves only when the test moves it, and sleepers on it. */
class FakeTime {
  atMs = 1_000_000
  readonly #sleepers = new Set<{ readonly wakeAt: number; readonly wake: () => void }>()

  readonly sleep: Sleep = (delayMs, signal) =>
    new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#sleepers.delete(sleeper)
        reject(signal?.reason)
      }
      const wake = (): void => {
        this.#sleepers.delete(sleeper)
        signal?.removeEventListener('abort', onAbort)
        resolve()
      }
      const sleeper = { wakeAt: this.atMs + delayMs, wake }
      if (signal?.aborted) return onAbort()
      signal?.addEventListener('abort', onAbort, { once: true })
      this.#sleepers.add(sleeper)
    })

  get sleeping(): number {
    return this.#sleepers.size
  }

  async advance(ms: number): Promise<void> {
    const untilMs = this.atMs + ms
    for (;;) {
      await settle()
      const [next] = [...this.#sleepers].sort((one, other) => one.wakeAt - other.wakeAt)
      if (next === undefined || next.wakeAt > untilMs) break
      this.atMs = next.wakeAt
      next.wake()
    }
    this.atMs = untilMs
  }
}

/** Lets everything happen that waits for nothing but its turn. */
function settle(): Promise<void> {
  return new Promise(process.nextTick)
}

/** A store in memory. */
class FakeStore implements DeliveryStore<string> {
  records = new Map<string, DeliveryRecord<string>>()
  readonly saves: (readonly DeliveryRecord<string>[])[] = []
  failing: Error | undefined
  isSaving = false
  hasOverlapped = false

  readonly load = (): Promise<readonly DeliveryRecord<string>[]> => Promise.resolve([...this.records.values()])

  readonly save = async (records: readonly DeliveryRecord<string>[]): Promise<void> => {
    if (this.isSaving) this.hasOverlapped = true
    this.isSaving = true
    await settle()
    this.isSaving = false
    if (this.failing !== undefined) throw this.failing
    this.saves.push(records)
    this.records = new Map(records.map((record) => [record.idempotencyKey, record]))
  }
}

interface SetUp {
  /** What a try does, by message and number of failed tries before. Default: it succeeds. */
  readonly deliver?: (attempt: DeliveryAttempt<string>) => Promise<void>
  readonly options?: Partial<DeliveryQueueOptions<string>>
  readonly time?: FakeTime
}

async function setUp({ deliver = () => Promise.resolve(), options = {}, time = new FakeTime() }: SetUp = {}) {
  const tries: [atMs: number, message: string, key: string, tries: number][] = []
  const events: DeliveryEvent<string>[] = []
  let keys = 0
  const queue = await DeliveryQueue.open<string>({
    deliver: (attempt) => {
      tries.push([time.atMs - 1_000_000, attempt.message, attempt.idempotencyKey, attempt.tries])
      return deliver(attempt)
    },
    newKey: () => `key-${++keys}`,
    nowMs: () => time.atMs,
    sleep: time.sleep,
    random: () => 0.5,
    onEvent: (event) => events.push(event),
    ...options,
  })
  const kinds = (): string[] => events.map(({ type }) => type)
  return { queue, time, tries, events, kinds }
}

const fails = (): Promise<never> => Promise.reject(new Error('503'))
/** A receiver that never answers and does not listen to the signal either. */
const hangs = (): Promise<never> => new Promise(() => undefined)

describe('a delivery', () => {
  it('is made once when it succeeds', async () => {
    const { queue, time, tries, events } = await setUp()
    expect(await queue.add('a')).toEqual({ outcome: 'queued', idempotencyKey: 'key-1', stored: false })
    await queue.idle()
    expect(tries).toEqual([[0, 'a', 'key-1', 0]])
    expect(events).toEqual([
      {
        type: 'delivered',
        delivery: { state: 'pending', idempotencyKey: 'key-1', message: 'a', addedAt: 1_000_000, tries: 0 },
      },
    ])
    expect(queue.counts()).toEqual({
      pending: 0,
      inFlight: 0,
      dead: 0,
      delivered: 1,
      failed: 0,
      failedTries: 0,
      refused: 0,
      deadDropped: 0,
    })
    expect(time.sleeping).toBe(0)
  })

  it('is tried again after growing waits, under the same key', async () => {
    const { queue, time, tries, kinds } = await setUp({
      deliver: ({ tries: failed }) => (failed < 3 ? fails() : Promise.resolve()),
    })
    await queue.add('a')
    await time.advance(14_000)
    expect(tries).toEqual([
      [0, 'a', 'key-1', 0],
      [2000, 'a', 'key-1', 1],
      [6000, 'a', 'key-1', 2],
      [14_000, 'a', 'key-1', 3],
    ])
    expect(kinds()).toEqual(['retrying', 'retrying', 'retrying', 'delivered'])
    expect(queue.counts()).toMatchObject({ pending: 0, delivered: 1, failedTries: 3 })
  })

  it('waits by the jitter, the base, the cap and what the receiver asks for', async () => {
    const options = { random: () => 0, baseMs: 100, capMs: 200, retryAfterMs: (): number => 160 }
    const { queue, time, tries } = await setUp({ deliver: fails, options })
    await queue.add('a')
    await time.advance(600)
    expect(tries.map(([atMs]) => atMs)).toEqual([0, 160, 320, 520])
    await queue.close()
  })

  it('also takes a try that throws at once', async () => {
    const { queue, time, tries } = await setUp({
      deliver: ({ tries: failed }) => {
        if (failed === 0) throw new Error('at once')
        return Promise.resolve()
      },
    })
    await queue.add('a')
    await time.advance(2000)
    expect(tries).toHaveLength(2)
    expect(queue.counts()).toMatchObject({ delivered: 1, inFlight: 0 })
  })

  it('is ended when it takes too long, also when it does not listen, and tried again', async () => {
    const signals: AbortSignal[] = []
    const { queue, time, tries } = await setUp({
      deliver: ({ tries: failed, signal }) => {
        signals.push(signal)
        return failed === 0 ? hangs() : Promise.resolve()
      },
      options: { timeoutMs: 500 },
    })
    await queue.add('a')
    await time.advance(499)
    expect(queue.counts()).toMatchObject({ inFlight: 1, failedTries: 0 })
    expect(signals[0]?.aborted).toBe(false)
    await time.advance(1)
    expect(queue.counts()).toMatchObject({ inFlight: 0, failedTries: 1 })
    expect(signals[0]?.reason).toMatchObject({ name: 'TimeoutError', message: 'No answer in 500 ms' })
    await time.advance(2000)
    expect(tries.map(([atMs]) => atMs)).toEqual([0, 2500])
    expect(queue.counts().delivered).toBe(1)
    expect(signals[1]?.aborted).toBe(false)
    expect(time.sleeping).toBe(0)
  })
})

describe('the queue', () => {
  it('makes `concurrency` attempts at once, in order of adding; messages that wait do not count', async () => {
    let most = 0
    const answers: (() => void)[] = []
    const run = await setUp({
      deliver: ({ message, tries }) => {
        most = Math.max(most, run.queue.counts().inFlight)
        if (message === 'bad' && tries === 0) return fails()
        return new Promise((resolve) => answers.push(resolve))
      },
      options: { mostInFlight: 2 },
    })
    for (const message of ['bad', 'a', 'b', 'c']) await run.queue.add(message)
    await settle()
    expect(run.tries.map(([, message]) => message)).toEqual(['bad', 'a', 'b'])
    expect(run.queue.counts()).toMatchObject({ pending: 4, inFlight: 2 })
    answers[0]?.()
    await settle()
    expect(run.tries.map(([, message]) => message)).toEqual(['bad', 'a', 'b', 'c'])
    await run.time.advance(2000)
    expect(run.tries).toHaveLength(4)
    for (const answer of answers) answer()
    await settle()
    expect(run.tries.at(-1)?.[1]).toBe('bad')
    answers.at(-1)?.()
    await run.queue.idle()
    expect(most).toBe(2)
    expect(run.queue.counts()).toMatchObject({ pending: 0, inFlight: 0, delivered: 4 })
  })

  it('rejects what it has no room for, and takes more when there is room', async () => {
    const answers: (() => void)[] = []
    const { queue } = await setUp({
      deliver: () => new Promise((resolve) => answers.push(resolve)),
      options: { mostPending: 2 },
    })
    const outcomes = [await queue.add('a'), await queue.add('b'), await queue.add('c')]
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['queued', 'queued', 'full'])
    expect(queue.counts()).toMatchObject({ pending: 2, refused: 1 })
    await settle()
    answers[0]?.()
    await settle()
    expect(await queue.add('d')).toMatchObject({ outcome: 'queued' })
    await queue.close()
    expect(await queue.add('e')).toEqual({ outcome: 'closed' })
  })

  it('takes a message once under a key of the caller, while it is pending and when it is dead', async () => {
    const { queue, time } = await setUp({ deliver: fails, options: { maxTries: 2 } })
    const add = () => queue.add('alert', { idempotencyKey: 'alert-7' })
    expect(await add()).toMatchObject({ outcome: 'queued', idempotencyKey: 'alert-7' })
    expect(await add()).toEqual({ outcome: 'duplicate', idempotencyKey: 'alert-7' })
    await time.advance(2000)
    expect(queue.counts()).toMatchObject({ pending: 0, dead: 1 })
    expect(await add()).toEqual({ outcome: 'duplicate', idempotencyKey: 'alert-7' })
    await expect(queue.add('x', { idempotencyKey: '' })).rejects.toMatchObject({
      code: 'SLUICE_RUNTIME_INVALID_OPTION',
    })
    await queue.close()
  })

  it('ends everything at its close and leaves nothing behind', async () => {
    const signals: AbortSignal[] = []
    const { queue, time, tries } = await setUp({
      deliver: ({ message, signal }) => {
        signals.push(signal)
        return message === 'between' ? fails() : hangs()
      },
      options: { mostInFlight: 2 },
    })
    for (const message of ['between', 'hangs', 'hangs too', 'waits']) await queue.add(message)
    await settle()
    expect(queue.counts()).toMatchObject({ pending: 4, inFlight: 2 })
    await Promise.all([queue.close(), queue.close()])
    expect(queue.counts()).toMatchObject({ pending: 4, inFlight: 0, dead: 0, failedTries: 1 })
    expect(signals.slice(1).map(({ aborted }) => aborted)).toEqual([true, true])
    expect(time.sleeping).toBe(0)
    await time.advance(100_000)
    expect(tries).toHaveLength(3)
    expect(queue.redeliver('key-1')).toBe('closed')
  })

  it('says nothing to standard error when a thousand messages wait', async () => {
    const warnings: unknown[] = []
    const onWarning = (warning: unknown): void => void warnings.push(warning)
    process.on('warning', onWarning)
    const { queue } = await setUp({ deliver: hangs })
    for (let n = 0; n < 1000; n++) await queue.add(`m${n}`)
    await queue.close()
    await settle()
    process.off('warning', onWarning)
    expect(warnings).toEqual([])
  })

  it.each([
    { maxTries: 0 },
    { timeoutMs: 0 },
    { mostPending: 0 },
    { mostInFlight: 0 },
    { mostDead: -1 },
    { baseMs: -1 },
    { baseMs: 2, capMs: 1 },
  ])('rejects %o', async (options) => {
    await expect(setUp({ options })).rejects.toMatchObject({ code: 'SLUICE_RUNTIME_INVALID_OPTION' })
  })
})

describe('dead letters', () => {
  it('are messages that failed `maxTries` times, with the reason', async () => {
    const { queue, time, tries, events } = await setUp({ deliver: fails, options: { maxTries: 3 } })
    await queue.add('a')
    await time.advance(100_000)
    expect(tries.map(([atMs]) => atMs)).toEqual([0, 2000, 6000])
    const letter = {
      state: 'dead',
      idempotencyKey: 'key-1',
      message: 'a',
      addedAt: 1_000_000,
      failedAt: 1_006_000,
      tries: 3,
      reason: '503',
    }
    expect(queue.deadLetters()).toEqual([letter])
    expect(events.at(-1)).toEqual({ type: 'dead', letter, error: new Error('503') })
    expect(queue.counts()).toMatchObject({ pending: 0, dead: 1, failedTries: 3, delivered: 0 })
  })

  it('are there after 8 tries when nothing else is said', async () => {
    const { queue, time, tries } = await setUp({ deliver: fails })
    await queue.add('a')
    await time.advance(3_600_000)
    expect(tries).toHaveLength(8)
    expect(queue.counts().dead).toBe(1)
  })

  it('are messages whose failure no further try can help', async () => {
    const { queue } = await setUp({
      deliver: () => Promise.reject(410),
      options: { shouldRetry: (error) => error !== 410 },
    })
    await queue.add('a')
    await queue.idle()
    expect(queue.deadLetters()).toMatchObject([{ tries: 1, reason: '410' }])
  })

  it('can be tried again, as often as new ones and under the old key', async () => {
    let isUp = false
    const { queue, time, tries } = await setUp({
      deliver: () => (isUp ? Promise.resolve() : fails()),
      options: { maxTries: 2 },
    })
    await queue.add('a')
    await time.advance(2000)
    expect(queue.redeliver('key-1')).toBe('queued')
    expect(queue.counts()).toMatchObject({ pending: 1, dead: 0 })
    await time.advance(2000)
    expect(queue.counts()).toMatchObject({ pending: 0, dead: 1, failed: 2, failedTries: 4 })
    isUp = true
    expect(queue.redeliver('key-1')).toBe('queued')
    await queue.idle()
    expect(tries.map(([, , key, failed]) => [key, failed])).toEqual([0, 1, 0, 1, 0].map((failed) => ['key-1', failed]))
    expect(queue.counts()).toMatchObject({ pending: 0, dead: 0, delivered: 1 })
    expect(queue.redeliver('key-1')).toBe('unknown')
  })

  it('stay dead while there is no room', async () => {
    const { queue, time } = await setUp({
      deliver: ({ message }) => (message === 'bad' ? fails() : hangs()),
      options: { maxTries: 1, mostPending: 1 },
    })
    await queue.add('bad')
    await time.advance(0)
    await queue.add('next')
    expect(queue.redeliver('key-1')).toBe('full')
    expect(queue.counts()).toMatchObject({ pending: 1, dead: 1 })
    await queue.close()
  })

  it.each([
    { mostDead: 2, left: ['c', 'd'], dropped: 2 },
    { mostDead: 0, left: [], dropped: 4 },
  ])('are bounded at $mostDead: the oldest go', async ({ mostDead, left, dropped }) => {
    const store = new FakeStore()
    const { queue, kinds } = await setUp({ deliver: fails, options: { maxTries: 1, mostDead, store } })
    for (const message of ['a', 'b', 'c', 'd']) {
      await queue.add(message)
      await queue.idle()
    }
    expect(queue.deadLetters().map(({ message }) => message)).toEqual(left)
    expect(queue.counts()).toMatchObject({ dead: mostDead, deadDropped: dropped })
    expect(kinds().filter((kind) => kind === 'dead-dropped')).toHaveLength(dropped)
    await queue.close()
    expect(Array.from(store.records.values(), ({ message }) => message)).toEqual(left)
  })
})

describe('with a store', () => {
  it('keeps what is pending and dead over a restart, with keys, tries and times', async () => {
    const store = new FakeStore()
    const first = await setUp({
      deliver: ({ message }) => (message === 'good' ? Promise.resolve() : fails()),
      options: { store, maxTries: 3, shouldRetry: () => true },
    })
    expect(await first.queue.add('good')).toMatchObject({ stored: true })
    await first.queue.add('dies')
    await first.time.advance(6000)
    await first.queue.add('waits')
    await first.time.advance(2000)
    await first.queue.close()
    expect([...store.records.values()]).toMatchObject([
      { state: 'dead', idempotencyKey: 'key-2', message: 'dies', tries: 3, addedAt: 1_000_000, failedAt: 1_006_000 },
      { state: 'pending', idempotencyKey: 'key-3', message: 'waits', tries: 2, addedAt: 1_006_000 },
    ])

    const second = await setUp({ deliver: fails, options: { store, maxTries: 3 }, time: first.time })
    expect(second.queue.deadLetters()).toMatchObject([{ idempotencyKey: 'key-2', reason: '503' }])
    await second.queue.idle()
    // The third try was the last.
    expect(second.tries).toEqual([[8000, 'waits', 'key-3', 2]])
    expect(second.queue.redeliver('key-2')).toBe('queued')
    await settle()
    await second.queue.close()

    const third = await setUp({ options: { store }, time: first.time })
    await third.queue.idle()
    expect(third.tries).toEqual([[8000, 'dies', 'key-2', 1]])
    expect(third.queue.deadLetters()).toMatchObject([{ message: 'waits', tries: 3 }])
    await third.queue.close()
    expect([...store.records.keys()]).toEqual(['key-3'])
  })

  it('makes one more try of a message that had all its tries before the restart', async () => {
    const store = new FakeStore()
    store.records.set('k', { state: 'pending', idempotencyKey: 'k', message: 'm', addedAt: 0, tries: 9 })
    const { queue, tries } = await setUp({ options: { store, maxTries: 3 } })
    await queue.idle()
    expect(tries).toEqual([[0, 'm', 'k', 9]])
    expect(queue.counts().delivered).toBe(1)
  })

  it('takes over everything that was saved, and drops dead letters beyond the bound', async () => {
    const store = new FakeStore()
    for (let n = 0; n < 5; n++) {
      const [base, reason] = [{ message: `m${n}`, addedAt: n, tries: 1 }, 'x']
      store.records.set(`p${n}`, { ...base, state: 'pending', idempotencyKey: `p${n}` })
      store.records.set(`d${n}`, { ...base, state: 'dead', idempotencyKey: `d${n}`, failedAt: n, reason })
    }
    const { queue } = await setUp({ deliver: hangs, options: { store, mostPending: 2, mostDead: 2 } })
    expect(queue.counts()).toMatchObject({ pending: 5, dead: 2, deadDropped: 3 })
    expect(queue.deadLetters().map(({ idempotencyKey }) => idempotencyKey)).toEqual(['d3', 'd4'])
    await queue.close()
    expect(store.records.size).toBe(7)
  })

  it('saves one at a time, and many changes together', async () => {
    const store = new FakeStore()
    const { queue } = await setUp({ deliver: hangs, options: { store } })
    await Promise.all(Array.from({ length: 50 }, (_, n) => queue.add(`m${n}`)))
    expect(store.saves.map((records) => records.length)).toEqual([50])
    const first = queue.add('first')
    while (!store.isSaving) await Promise.resolve()
    await Promise.all([first, queue.add('second'), queue.add('third')])
    expect(store.saves.slice(1).map((records) => records.slice(50).map(({ message }) => message))).toEqual([
      ['first'],
      ['first', 'second', 'third'],
    ])
    await queue.close()
    expect(store.records.size).toBe(53)
    expect(store.hasOverlapped).toBe(false)
  })

  it('delivers in spite of a store that fails, says so, and saves later', async () => {
    const store = new FakeStore()
    store.failing = new Error('disk full')
    const { queue, time, kinds, events } = await setUp({
      deliver: ({ message }) => (message === 'stays' ? fails() : Promise.resolve()),
      options: { store },
    })
    expect(await queue.add('goes')).toMatchObject({ outcome: 'queued', stored: false })
    expect(await queue.add('stays')).toMatchObject({ outcome: 'queued', stored: false })
    await time.advance(0)
    expect(kinds()).toContain('delivered')
    expect(events).toContainEqual({ type: 'store-failed', error: store.failing })
    store.failing = undefined
    await queue.close()
    expect([...store.records.values()]).toMatchObject([{ message: 'stays', tries: 1 }])
  })

  it('does not open when the store cannot load', async () => {
    const store = new FakeStore()
    const broken = { load: () => Promise.reject(new Error('no table')), save: store.save }
    await expect(setUp({ options: { store: broken } })).rejects.toThrow('no table')
  })

  it('loses nothing and repeats no key for two messages, whenever it is stopped (property)', async () => {
    const message = fc.record({ failures: fc.nat({ max: 5 }), addAtMs: fc.nat({ max: 30_000 }) })
    const stops = fc.array(fc.integer({ min: 1, max: 20_000 }), { maxLength: 5 })
    await fc.assert(
      fc.asyncProperty(fc.array(message, { maxLength: 12 }), stops, async (messages, stopAfterMs) => {
        const store = new FakeStore()
        const time = new FakeTime()
        const failed = new Map<string, number>()
        const received = new Map<string, Set<string>>()
        const deliver = (attempt: DeliveryAttempt<string>): Promise<void> => {
          const keys = received.get(attempt.message) ?? new Set()
          received.set(attempt.message, keys.add(attempt.idempotencyKey))
          const before = failed.get(attempt.message) ?? 0
          failed.set(attempt.message, before + 1)
          return before < messages[Number(attempt.message)]!.failures ? fails() : Promise.resolve()
        }
        let nextKey = 0
        const newKey = (): string => `key-${nextKey++}`
        let delivered = 0
        let addedUntil = -1
        for (const lastMs of [...stopAfterMs, 1_000_000]) {
          const { queue } = await setUp({ deliver, options: { store, newKey, maxTries: 4 }, time })
          const untilMs = time.atMs - 1_000_000 + lastMs
          for (const [index, { addAtMs }] of messages.entries()) {
            if (addAtMs > addedUntil && addAtMs <= untilMs) await queue.add(String(index))
          }
          addedUntil = Math.max(addedUntil, untilMs)
          await time.advance(lastMs)
          delivered += queue.counts().delivered
          await queue.close()
        }
        expect(store.records.size + delivered).toBe(messages.length)
        expect([...store.records.values()].every(({ state }) => state === 'dead')).toBe(true)
        expect(delivered).toBe(messages.filter(({ failures }) => failures < 4).length)
        const keys = [...received.values()].flatMap((set) => [...set])
        expect(keys.toSorted()).toEqual([...new Set(keys)].toSorted())
        expect([...received.values()].every((set) => set.size === 1)).toBe(true)
      }),
      { numRuns: 50 },
    )
  })
})
