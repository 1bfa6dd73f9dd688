import type { Decision, LimiterSet, Reservation, Rule, Store } from '@sluice/core'
import { createLimiter, isSluiceError } from '@sluice/core'
import { compileRule, createBatch, createItem, decisionOn, MICROS_PER_MS } from '@sluice/core/internal'
import type { Mode, Receipt } from '@sluice/core/store'
import { receiptOf } from '@sluice/core/store'
import fc from 'fast-check'
import { expect } from 'vitest'
import { FakeClock } from '../fakes/fake-clock.ts'
import { seededRandom } from '../fakes/seeded-random.ts'
import type { AlgorithmName } from './arbitraries.ts'

/** The name of one of the rules in {@link OPERATION_RULES}. */
export type OperationRule =
  | 'bucket'
  | 'fractional'
  | 'rolling'
  | 'meter'
  | 'queue'
  | 'gcra'
  | 'fixed'
  | 'rollover'
  | 'calendar'
  | 'counter'
  | 'log'
  | 'segments'
  | 'hybrid'
  | 'burst'
  | 'slots'
  | 'windows'

/** The rules that random operations use: small enough that limits are met, of every algorithm. */
export const OPERATION_RULES: Readonly<Record<OperationRule, Rule>> = {
  bucket: { algorithm: 'token-bucket', capacity: 5, refillPerSecond: 2 },
  fractional: { algorithm: 'token-bucket', capacity: 2.3, refillPerSecond: 1.7 },
  rolling: { algorithm: 'token-bucket', capacity: 3.5, refillPerSecond: 2, rollover: true },
  meter: { algorithm: 'leaky-bucket-meter', capacity: 4, leakPerSecond: 1 / 3 },
  queue: { algorithm: 'leaky-bucket-queue', capacity: 4, ratePerSecond: 3 },
  gcra: { limit: 6, window: '2s', burst: 3 },
  fixed: { algorithm: 'fixed-window', limit: 5, window: '2s' },
  rollover: { algorithm: 'fixed-window', limit: 5, window: '2s', rollover: true },
  calendar: { algorithm: 'fixed-window', limit: 5, window: { calendar: 'minute', timeZone: 'Asia/Kathmandu' } },
  counter: { algorithm: 'sliding-window-counter', limit: 5, window: '3s' },
  log: { algorithm: 'sliding-window-log', limit: 5, window: '3s' },
  segments: { algorithm: 'sliding-window-log', limit: 5, window: '3s', segments: 4 },
  hybrid: { algorithm: 'hybrid', limit: 3, window: '2s', burst: { capacity: 2.5, refillPerSecond: 1 } },
  burst: { algorithm: 'sliding-window-counter', limit: 3, window: '2s', burst: 5 },
  slots: { algorithm: 'concurrency', limit: 4, lease: '3s' },
  windows: {
    algorithm: 'fixed-window',
    windows: [
      { limit: 3, window: '1s' },
      { limit: 6, window: '5s' },
    ],
  },
}

/** The rules that one algorithm decides; a differential test of a store that lacks one leaves them out. */
export const RULES_OF: { readonly [A in AlgorithmName]: readonly OperationRule[] } = {
  'token-bucket': ['bucket', 'fractional'],
  'token-bucket-rollover': ['rolling'],
  'leaky-bucket-meter': ['meter'],
  'leaky-bucket-queue': ['queue'],
  gcra: ['gcra'],
  'fixed-window': ['fixed', 'rollover', 'calendar', 'windows'],
  'sliding-window-counter': ['counter'],
  'sliding-window-log': ['log'],
  'sliding-window-segments': ['segments'],
  hybrid: ['hybrid', 'burst'],
  concurrency: ['slots'],
}

/** The rules that units are taken on lease of. */
const LEASABLE_RULES: ReadonlySet<OperationRule> = new Set([
  'bucket',
  'fractional',
  'meter',
  'gcra',
  'fixed',
  'counter',
  'windows',
])

interface Target {
  readonly rule: OperationRule
  readonly key: string
}

/** One thing that is done to a store. `which` counts decisions, reservations or leases back from the latest. */
export type Operation =
  | { readonly kind: 'advance'; readonly ms: number }
  | (Target & {
      readonly kind: 'check' | 'peek'
      readonly cost: number
      readonly partial: boolean
      readonly entitled: boolean
    })
  | { readonly kind: 'checkAll'; readonly requests: readonly (Target & { readonly cost: number })[] }
  | (Target & { readonly kind: 'reserve'; readonly cost: number; readonly expiresAfterMs: number })
  | { readonly kind: 'settle'; readonly which: number; readonly actual: number }
  | { readonly kind: 'renew'; readonly which: number }
  | { readonly kind: 'refund'; readonly which: number; readonly units: number | undefined }
  | (Target & { readonly kind: 'adjust'; readonly units: number })
  | (Target & { readonly kind: 'block'; readonly ms: number; readonly reset: boolean })
  | (Target & { readonly kind: 'unblock' | 'reset' })
  | (Target & { readonly kind: 'lease'; readonly cost: number; readonly ms: number; readonly partial: boolean })
  | { readonly kind: 'settleLease'; readonly which: number; readonly spent: number }

/** Which operations to draw. */
export interface OperationOptions {
  /** Rules to use. Default: all of {@link OPERATION_RULES}. */
  readonly rules?: readonly OperationRule[]
  /** Whether operations also lease units, which only stores shared by several nodes support. Default: false. */
  readonly leases?: boolean
}

/** Sequences of operations on a few keys of some rules. */
export function operations({
  rules: names = Object.keys(OPERATION_RULES) as OperationRule[],
  leases = false,
}: OperationOptions = {}): fc.Arbitrary<readonly Operation[]> {
  const rule = fc.constantFrom(...names)
  const key = fc.constantFrom('a', 'b', '{c}\0')
  const cost = fc.oneof(
    { weight: 3, arbitrary: fc.constant(1) },
    { weight: 2, arbitrary: fc.integer({ min: 0, max: 7 }) },
  )
  const which = fc.nat(3)
  const kind = <K extends string>(name: K): fc.Arbitrary<K> => fc.constant(name)
  const advance = fc.record({
    kind: kind('advance'),
    ms: fc.oneof(fc.constantFrom(0, 1, 250, 333, 500, 1000), fc.nat(4000), fc.nat(70_000)),
  })
  const check = fc.record({
    kind: fc.constantFrom('check' as const, 'check' as const, 'peek' as const),
    rule,
    key,
    cost,
    partial: fc.boolean(),
    entitled: fc.boolean(),
  })
  const requests = fc.array(fc.record({ rule, key, cost }), { minLength: 1, maxLength: 4 })
  const expiresAfterMs = fc.integer({ min: 1, max: 5000 })
  const everyStore = [
    { weight: 5, arbitrary: advance },
    { weight: 8, arbitrary: check },
    { weight: 3, arbitrary: fc.record({ kind: kind('checkAll'), requests }) },
    { weight: 3, arbitrary: fc.record({ kind: kind('reserve'), rule, key, cost, expiresAfterMs }) },
    { weight: 3, arbitrary: fc.record({ kind: kind('settle'), which, actual: fc.nat(8) }) },
    { weight: 1, arbitrary: fc.record({ kind: kind('renew'), which }) },
    {
      weight: 3,
      arbitrary: fc.record({ kind: kind('refund'), which, units: fc.option(fc.nat(6), { nil: undefined }) }),
    },
    { weight: 2, arbitrary: fc.record({ kind: kind('adjust'), rule, key, units: fc.integer({ min: -6, max: 6 }) }) },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: kind('block'),
        rule,
        key,
        ms: fc.integer({ min: 1, max: 5000 }),
        reset: fc.boolean(),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('unblock' as const, 'reset' as const), rule, key }) },
  ] as const
  const leasable = names.filter((name) => LEASABLE_RULES.has(name))
  const operation: fc.Arbitrary<Operation> =
    leases && leasable.length > 0 ? fc.oneof(...everyStore, ...leaseOperations(leasable, key)) : fc.oneof(...everyStore)
  return fc.array(operation, { minLength: 1, maxLength: 40 })
}

function leaseOperations(
  names: readonly OperationRule[],
  key: fc.Arbitrary<string>,
): readonly { readonly weight: number; readonly arbitrary: fc.Arbitrary<Operation> }[] {
  const ms = fc.oneof(fc.constantFrom(1, 500, 1000), fc.integer({ min: 1, max: 5000 }))
  const lease = fc.record({
    kind: fc.constant('lease' as const),
    rule: fc.constantFrom(...names),
    key,
    cost: fc.integer({ min: 1, max: 5 }),
    ms,
    partial: fc.boolean(),
  })
  const settleLease = fc.record({ kind: fc.constant('settleLease' as const), which: fc.nat(3), spent: fc.nat(5) })
  return [
    { weight: 6, arbitrary: lease },
    { weight: 5, arbitrary: settleLease },
  ]
}

/** Leases are numbered from here on: the same in both stores, and nowhere near what a seeded draw gives. */
const FIRST_LEASE_HOLDER = 2 ** 52

/** One store, used by operations. */
class Performer {
  readonly #store: Store
  readonly #set: LimiterSet<OperationRule>
  readonly #decisions: Decision[] = []
  readonly #reservations: Reservation[] = []
  readonly #leases: Receipt[] = []

  constructor(store: Store, clock: FakeClock) {
    this.#store = store
    this.#set = createLimiter<OperationRule, Mode>({ rules: OPERATION_RULES, store, clock, random: seededRandom(7) })
  }

  /** What the store answers; a coded error is an answer too. */
  async perform(operation: Operation): Promise<unknown> {
    try {
      return await this.#perform(operation)
    } catch (error) {
      if (isSluiceError(error)) return error.code
      throw error
    }
  }

  async #perform(operation: Operation): Promise<unknown> {
    switch (operation.kind) {
      case 'advance':
        return undefined
      case 'check':
      case 'peek':
      case 'checkAll':
        return this.#noted(await this.#decide(operation))
      case 'reserve':
        return await this.#reserve(operation)
      case 'settle':
        return await this.#reservations.at(-1 - operation.which)?.settle(operation.actual)
      case 'renew':
        return await this.#reservations.at(-1 - operation.which)?.renew()
      case 'refund': {
        const decision = this.#decisions.at(-1 - operation.which)
        return decision && (await this.#set.refund(decision, operation.units))
      }
      case 'adjust':
        return await this.#set.limiter(operation.rule).adjust(operation.key, operation.units)
      case 'block':
        return await this.#set.limiter(operation.rule).block(operation.key, operation.ms, { reset: operation.reset })
      case 'unblock':
        return await this.#set.limiter(operation.rule).unblock(operation.key)
      case 'reset':
        return await this.#set.limiter(operation.rule).reset(operation.key)
      case 'lease':
        return await this.#lease(operation)
      case 'settleLease': {
        const receipt = this.#leases.at(-1 - operation.which)
        const actuals = receipt?.charges.map(({ cost }) => Math.min(cost, operation.spent))
        return receipt && actuals && (await this.#store.settle(receipt, actuals))
      }
    }
  }

  async #decide(operation: Extract<Operation, { kind: 'check' | 'peek' | 'checkAll' }>): Promise<Decision> {
    if (operation.kind === 'checkAll') return await this.#set.checkAll(operation.requests)
    const limiter = this.#set.limiter(operation.rule)
    const { key, cost, partial, entitled } = operation
    return await (operation.kind === 'check'
      ? limiter.check(key, { cost, partial, entitled })
      : limiter.peek(key, { cost, partial, entitled }))
  }

  async #reserve({ rule, key, cost, expiresAfterMs }: Extract<Operation, { kind: 'reserve' }>): Promise<Decision> {
    const answer = await this.#set.limiter(rule).reserve(key, { cost, expiresAfter: expiresAfterMs })
    if (!answer.allowed) return { ...answer }
    this.#reservations.push(answer)
    return { ...answer.decision }
  }

  async #lease({ rule, key, cost, ms, partial }: Extract<Operation, { kind: 'lease' }>): Promise<Decision> {
    const limits = compileRule(rule, OPERATION_RULES[rule])
    const batch = createBatch(limits.map((limit) => createItem(limit, key, cost)))
    batch.partial = partial
    batch.leaseMicros = ms * MICROS_PER_MS
    batch.holder = FIRST_LEASE_HOLDER + this.#leases.length
    await this.#store.decide(batch)
    if (batch.allowed) this.#leases.push(receiptOf(batch))
    return { ...decisionOn(batch, undefined) }
  }

  #noted(decision: Decision): Decision {
    this.#decisions.push(decision)
    return { ...decision }
  }
}

/** Operations, and the clock that both stores take their time from. */
export interface OperationSequence {
  readonly operations: readonly Operation[]
  readonly clock: FakeClock
  /** Advances the time of both stores. Default: advances `clock`. */
  readonly advance?: (ms: number) => void | Promise<void>
}

/** Performs operations on two stores and expects the same answers, field by field. Both must be new. */
export async function expectSameDecisions(one: Store, other: Store, sequence: OperationSequence): Promise<void> {
  const { clock, advance = (ms) => clock.advance(ms) } = sequence
  const performers = [new Performer(one, clock), new Performer(other, clock)] as const
  for (const [index, operation] of sequence.operations.entries()) {
    if (operation.kind === 'advance') await advance(operation.ms)
    const [first, second] = [await performers[0].perform(operation), await performers[1].perform(operation)]
    expect({ index, operation, answer: second }).toEqual({ index, operation, answer: first })
  }
}

/** Compares two kinds of stores on random sequences of operations. */
export async function expectSameStores(
  create: (clock: FakeClock) => { readonly one: Store; readonly other: Store },
  { numRuns = 100, ...options }: OperationOptions & { readonly numRuns?: number } = {},
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(operations(options), async (sequence) => {
      const clock = new FakeClock()
      const { one, other } = create(clock)
      try {
        await expectSameDecisions(one, other, { operations: sequence, clock })
      } finally {
        await one.close()
        await other.close()
      }
    }),
    { numRuns },
  )
}
