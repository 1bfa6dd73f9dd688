import { seededRandom } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { AdaptiveLimit, createConcurrencyLimit } from './concurrency-limit.ts'
import { PriorityReserve } from './priority-reserve.ts'
import {
  attemptOn,
  FAILURE,
  fakeUpstream,
  instancesOf,
  isNoInstance,
  noInstanceOf,
  OK,
} from './upstreams.test.support.ts'

/** Requests of one class in one span of a simulation. */
interface Tally {
  admitted: number
  turnedAway: number
}

interface SimulationOptions {
  readonly first?: number
  readonly min?: number
  /** Requests per second of each class. */
  readonly rates: readonly number[]
  readonly seed?: number
}

/**
 * An instance that works on `capacity` requests at a time, in the order of their arrival, and takes `serviceMs` for
 * each, give or take a fifth; requests arrive at random. Time is simulated.
 */
class Simulation {
  capacity = 20
  serviceMs = 50
  failing = false
  readonly limit: AdaptiveLimit
  readonly #reserve = new PriorityReserve()
  readonly #random: ReturnType<typeof seededRandom>
  readonly #rates: readonly number[]
  #nowMs = 0
  #inFlight = 0
  /** When requests in flight end, in order. */
  readonly #freeAtMs: number[] = []
  readonly #events: { readonly atMs: number; readonly run: () => void }[] = []
  #tallies: Tally[] = []
  #latencies: number[] = []
  #answered = 0

  constructor({ first = 20, min = 4, rates, seed = 1 }: SimulationOptions) {
    this.#random = seededRandom(seed)
    this.#rates = rates
    this.limit = new AdaptiveLimit({ first, min, max: 1000, nowMs: () => this.#nowMs, random: this.#random })
    for (const priority of rates.keys()) this.#arriveLater(priority)
  }

  /** Runs for some time and says what happened in it. */
  run(forMs: number) {
    const untilMs = this.#nowMs + forMs
    this.#tallies = this.#rates.map(() => ({ admitted: 0, turnedAway: 0 }))
    this.#latencies = []
    this.#answered = 0
    for (let next = this.#next(untilMs); next !== undefined; next = this.#next(untilMs)) {
      this.#nowMs = next.atMs
      next.run()
    }
    this.#nowMs = untilMs
    const sorted = this.#latencies.toSorted((one, other) => one - other)
    return {
      limit: this.limit.limit,
      tallies: this.#tallies,
      perSecond: (this.#answered * 1000) / forMs,
      medianMs: sorted[sorted.length >> 1] ?? 0,
    }
  }

  #arriveLater(priority: number): void {
    const waitMs = (-Math.log(1 - this.#draw()) * 1000) / this.#rates[priority]!
    this.#at(this.#nowMs + waitMs, () => {
      this.#arriveLater(priority)
      this.#arrive(priority)
    })
  }

  #arrive(priority: number): void {
    this.#reserve.note(priority, this.#nowMs)
    const tally = this.#tallies[priority]!
    if (this.#inFlight >= this.#reserve.slotsFor(priority, this.limit.limit, this.#nowMs)) {
      tally.turnedAway++
      return
    }
    tally.admitted++
    this.#inFlight++
    const startedMs = this.#nowMs
    while (this.#freeAtMs[0] !== undefined && this.#freeAtMs[0] <= startedMs) this.#freeAtMs.shift()
    const beginsMs = this.#freeAtMs.length < this.capacity ? startedMs : this.#freeAtMs.at(-this.capacity)!
    const endsMs = beginsMs + this.serviceMs * (0.8 + this.#draw() * 0.4)
    this.#freeAtMs.splice(this.#freeAtMs.findLastIndex((atMs) => atMs <= endsMs) + 1, 0, endsMs)
    this.#at(endsMs, () => {
      const latencyMs = endsMs - startedMs
      this.#latencies.push(latencyMs)
      this.#answered++
      const sample = { startedMs, latencyMs: this.failing ? undefined : latencyMs, inFlight: this.#inFlight }
      this.limit.record(sample, this.#nowMs)
      this.#inFlight--
    })
  }

  #draw(): number {
    return this.#random.nextUint32() / 2 ** 32
  }

  #at(atMs: number, run: () => void): void {
    const index = this.#events.findLastIndex((event) => event.atMs <= atMs)
    this.#events.splice(index + 1, 0, { atMs, run })
  }

  #next(untilMs: number) {
    return this.#events[0] !== undefined && this.#events[0].atMs <= untilMs ? this.#events.shift() : undefined
  }
}

/** The most that the limit settles at: 1.5 C + sqrt(limit), with some room for chance. */
function mostLimit(capacity: number): number {
  const root = (1 + Math.sqrt(1 + 6 * capacity)) / 2
  return root * root * 1.25
}

describe('the adaptive limit', () => {
  it.each([
    [5, 20],
    [20, 20],
    [20, 200],
    [100, 20],
    [100, 500],
  ])('settles at the capacity of %d from a limit of %d, whatever is offered beyond', (capacity, first) => {
    const simulation = new Simulation({ first, rates: [(capacity / 50) * 1000 * 2.5] })
    simulation.capacity = capacity
    simulation.run(70_000)
    const { limit, perSecond, medianMs } = simulation.run(40_000)
    expect(limit).toBeGreaterThanOrEqual(capacity)
    expect(limit).toBeLessThanOrEqual(mostLimit(capacity))
    // The whole capacity is used, and requests wait for less than they would in a queue without bound.
    expect(perSecond).toBeGreaterThan((capacity / 50) * 1000 * 0.95)
    expect(medianMs).toBeLessThan(50 * 2.6)
  })

  it.each([
    [{}, 5],
    [{ max: 2 }, 2],
    [{ min: 2000 }, 2000],
    [{ min: 1, max: 50 }, 5],
  ])('is within %j from the first measurement on', (bounds, first) => {
    const parts = { nowMs: () => 0, random: seededRandom(1) }
    expect(createConcurrencyLimit({ mode: 'adaptive', ...bounds }, parts)!.limit).toBe(first)
  })

  it('does not grow beyond what is used', () => {
    // About 5 requests at a time, and seldom 15.
    const simulation = new Simulation({ rates: [100] })
    const { limit, tallies } = simulation.run(120_000)
    expect(limit).toBeLessThanOrEqual(40)
    expect(tallies[0]!.turnedAway / tallies[0]!.admitted).toBeLessThan(0.02)
  })

  it('follows a loss of capacity within seconds, and its return', () => {
    const simulation = new Simulation({ rates: [1200] })
    simulation.capacity = 40
    simulation.run(60_000)
    simulation.capacity = 10
    simulation.run(5000)
    const during = simulation.run(20_000)
    expect(during.limit).toBeLessThanOrEqual(mostLimit(10))
    expect(during.perSecond).toBeGreaterThan(0.9 * 200)
    simulation.capacity = 40
    simulation.run(5000)
    const after = simulation.run(20_000)
    expect(after.limit).toBeGreaterThanOrEqual(40)
    expect(after.perSecond).toBeGreaterThan(0.9 * 800)
  })

  it('accepts that an instance has become slower for good, after the next probe', () => {
    const simulation = new Simulation({ rates: [3000] })
    simulation.capacity = 40
    simulation.run(60_000)
    simulation.serviceMs = 150
    simulation.run(45_000)
    const { limit, perSecond } = simulation.run(20_000)
    expect(limit).toBeGreaterThanOrEqual(40)
    expect(perSecond).toBeGreaterThan(0.9 * (40_000 / 150))
  })

  it('shrinks to its minimum while requests fail, and recovers', () => {
    const simulation = new Simulation({ rates: [1200] })
    simulation.run(60_000)
    simulation.failing = true
    expect(simulation.run(20_000).limit).toBeLessThanOrEqual(8)
    simulation.failing = false
    simulation.run(40_000)
    expect(simulation.run(20_000).perSecond).toBeGreaterThan(0.9 * 400)
  })

  it('never starves class 0, and turns away the others in their order', () => {
    const capacity = 20
    // Class 0 needs a quarter of the capacity; the others offer three times the capacity together.
    const simulation = new Simulation({ rates: [100, 400, 400, 400] })
    simulation.capacity = capacity
    simulation.run(60_000)
    const { tallies } = simulation.run(60_000)
    const shares = tallies.map(({ admitted, turnedAway }) => admitted / (admitted + turnedAway))
    expect(shares[0]).toBeGreaterThan(0.99)
    expect(shares).toEqual(shares.toSorted((one, other) => other - one))
    expect(shares[3]).toBeLessThan(0.1)
  })

  it('does not turn away anyone for a class that sends nothing', () => {
    const reserve = new PriorityReserve()
    reserve.note(3, 0)
    expect(reserve.slotsFor(3, 100, 0)).toBe(100)
    reserve.note(0, 0)
    reserve.note(2, 0)
    expect([0, 1, 2, 3].map((priority) => reserve.slotsFor(priority, 100, 9999))).toEqual([100, 90, 90, 80])
    expect([0, 1, 2, 3].map((priority) => reserve.slotsFor(priority, 100, 10_000))).toEqual([100, 100, 100, 100])
    expect([0, 1, 2, 3].map((priority) => reserve.slotsFor(priority, 2, 0))).toEqual([2, 1, 1, 1])
  })
})

describe('the fixed limit', () => {
  it('admits exactly that number of requests at a time on each instance, then answers no capacity', () => {
    const { upstream } = fakeUpstream({ instances: instancesOf(2), concurrency: { mode: 'fixed', limit: 3 } })
    const attempts = Array.from({ length: 6 }, () => attemptOn(upstream))
    expect(noInstanceOf(upstream)).toEqual({ reason: 'no-capacity', retryAfterSeconds: 1 })
    expect(upstream.isAvailable).toBe(true)
    attempts[0]!.finish(OK)
    attempts[1]!.finish(FAILURE)
    expect([attemptOn(upstream), attemptOn(upstream)].map(({ instance }) => instance)).toHaveLength(2)
    expect(isNoInstance(upstream.choose({ hashKey: undefined, priority: 0 }))).toBe(true)
    expect(upstream.stats().instances.map(({ concurrencyLimit, inFlight }) => [concurrencyLimit, inFlight])).toEqual([
      [3, 3],
      [3, 3],
    ])
    expect(upstream.stats().turnedAway).toEqual({ noHealthyInstance: 0, noCapacity: 2 })
  })
})

it('an upstream with an adaptive limit reports it and turns away at first what may be too much', () => {
  const { upstream } = fakeUpstream({ instances: instancesOf(1), concurrency: { mode: 'adaptive', limit: 40, min: 2 } })
  for (let request = 0; request < 10; request++) attemptOn(upstream)
  expect(noInstanceOf(upstream).reason).toBe('no-capacity')
  expect(upstream.stats().instances[0]!.concurrencyLimit).toBe(10)
})
