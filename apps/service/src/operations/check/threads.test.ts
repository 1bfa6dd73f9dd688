import type { SharedMemoryStore } from '@sluice/core'
import { attachSharedMemoryStore, sharedMemoryStore } from '@sluice/core'
import type { RuleSet } from '@sluice/core/policy'
import { FakeClock } from '@sluice/testing'
import { afterEach, describe, expect, it } from 'vitest'
import type { ServiceMessages } from '../../service-context.ts'
import type { ThreadGroup } from '../../thread-messages/message-bus.ts'
import { CheckApi } from './check-api.test.support.ts'
import { CUT_RULES, limitOf, reportsOf } from './report.suite.test.support.ts'

const ORDER = { userId: 'ann', resource: '/orders' }
const JOB = { tenantId: 'acme', resource: '/jobs' }

const RULES: RuleSet = {
  rules: [
    { resource: '/orders', dimension: 'user', algorithm: 'fixed-window', limit: 100, window: '1h' },
    { resource: '/jobs', dimension: 'tenant', algorithm: 'concurrency', limit: 2, lease: '30s' },
  ],
}

/** Threads that call each other like real ones: payloads and replies are copied. */
class Threads {
  readonly #handlers: Map<string, (...payload: never) => unknown>[] = []
  readonly #count: number

  constructor(count: number) {
    this.#count = count
  }

  join(): ThreadGroup<ServiceMessages> {
    const mine = new Map<string, (...payload: never) => unknown>()
    const index = this.#handlers.push(mine) - 1
    const others = this.#handlers
    return {
      index,
      count: this.#count,
      handle: (name, handler) => void mine.set(name, handler),
      callMain: () => Promise.reject(new Error('There is no main thread.')),
      gather: async (name, ...payload) => {
        const calls = others.map((one) => one.get(name)?.(...(structuredClone(payload) as never)))
        return { replies: structuredClone(await Promise.all(calls)) as never, timedOut: 0 }
      },
    }
  }

  /** The thread ends without a word. */
  end(index: number): void {
    this.#handlers[index]!.clear()
    this.#handlers[index]!.set('reservations.settle', () => null)
    this.#handlers[index]!.set('reservations.renew', () => null)
  }
}

const open: SharedMemoryStore[] = []

afterEach(async () => {
  for (const store of open.splice(0)) await store.close()
})

/** Handlers of several threads over one shared memory, each with its own view of it. */
function threads(
  count: number,
  ruleSet = RULES,
): { readonly apis: readonly CheckApi[]; clock: FakeClock; group: Threads } {
  const clock = new FakeClock()
  const group = new Threads(count)
  const first = sharedMemoryStore({ clock, maxKeys: 1000, maxStateSize: 16 })
  const views = [first, ...Array.from({ length: count - 1 }, () => attachSharedMemoryStore(first.handle(), { clock }))]
  open.push(...views)
  const apis = views.map((store) => new CheckApi({ store, clock, ruleSet, threads: group.join() }))
  return { apis, clock, group }
}

describe('threads that share one memory', () => {
  it('settle each other their reservations, exactly and once', async () => {
    const { apis } = threads(3)
    const [one, two, three] = apis as [CheckApi, CheckApi, CheckApi]
    const { reservationId } = (await one.post('reserve', { ...ORDER, tokens: 40 })).body
    const settled = { outcome: 'settled', corrected: -33 }
    expect((await two.post('settle', { reservationId, tokens: 7 })).body).toEqual(settled)
    expect(await three.remaining(ORDER)).toBe(93)
    expect((await three.post('settle', { reservationId, tokens: 7 })).body).toEqual(settled)
    expect((await one.post('release', { reservationId })).body).toEqual(settled)
    expect(await one.remaining(ORDER)).toBe(93)
  })

  it('release each other their reservations', async () => {
    const { apis } = threads(2)
    const [one, two] = apis as [CheckApi, CheckApi]
    const { reservationId } = (await two.post('reserve', { ...ORDER, tokens: 40 })).body
    expect((await one.post('release', { reservationId })).body).toEqual({ outcome: 'settled', corrected: -40 })
    expect(await two.remaining(ORDER)).toBe(100)
  })

  it('say that a reservation came late when it had run out', async () => {
    const { apis, clock } = threads(2)
    const [one, two] = apis as [CheckApi, CheckApi]
    const { reservationId } = (await one.post('reserve', { ...ORDER, tokens: 40, expiresAfterMs: 1000 })).body
    clock.advance(1000)
    expect((await two.post('settle', { reservationId, tokens: 7 })).body).toEqual({ outcome: 'late', corrected: 7 })
    expect(await two.remaining(ORDER)).toBe(93)
  })

  it('charge what was used again when the thread that knew the reservation has ended', async () => {
    const { apis, group } = threads(2)
    const [one, two] = apis as [CheckApi, CheckApi]
    const { reservationId } = (await one.post('reserve', { ...ORDER, tokens: 40 })).body
    group.end(0)
    expect((await two.post('settle', { reservationId, tokens: 7 })).body).toEqual({ outcome: 'late', corrected: 7 })
    // Too little is left rather than too much.
    expect(await two.remaining(ORDER)).toBe(53)
  })

  it('renew and release each other their slots without asking', async () => {
    const { apis, clock, group } = threads(2)
    const [one, two] = apis as [CheckApi, CheckApi]
    const { reservationId } = (await one.post('acquire', JOB)).body
    group.end(0)
    clock.advance(29_000)
    expect((await two.post('heartbeat', { reservationId })).body['outcome']).toBe('renewed')
    expect((await two.post('release', { reservationId })).body).toEqual({ outcome: 'settled', corrected: -1 })
    expect((await one.post('heartbeat', { reservationId })).body['outcome']).toBe('gone')
    expect((await one.post('release', { reservationId })).body).toEqual({ outcome: 'gone', corrected: 0 })
  })

  it('count each other their reports of calls, once, so that all cut limits at the same call', async () => {
    const { apis } = threads(3, CUT_RULES)
    const limits = (): Promise<unknown[]> => Promise.all(apis.map((api) => limitOf(api)))
    for (const api of apis) await api.post('report', reportsOf(3))
    expect(await limits()).toEqual([100, 100, 100])
    await apis[1]!.post('report', reportsOf(1))
    expect(await limits()).toEqual([50, 50, 50])
  })

  it('never hand out more than the limit together', async () => {
    const { apis } = threads(4)
    const requests = Array.from({ length: 25 }, () => ORDER)
    const answers = await Promise.all(
      Array.from({ length: 16 }, (_, call) => apis[call % 4]!.post('batch', { requests })),
    )
    const allowed = answers
      .flatMap(({ body }) => body['answers'] as { allowed: boolean }[])
      .filter((one) => one.allowed)
    expect(allowed.length).toBe(100)
  })
})
