import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Decision } from '../../limiter/decision.ts'
import type { Limiter } from '../../limiter/limiter.ts'
import type { Reservation } from '../../limiter/reservation.ts'
import type { Rule } from '../../rule/rule.ts'
import { MICROS_PER_MS } from '../../system/clock-and-timers.ts'
import { LocalNodes } from './local-nodes.test.support.ts'

// The bound of docs/decisions/2026-11-17-local-decisions-during-an-outage.md, over random schedules: outages of the
// store, nodes that are cut off from it, restarts, refunds. An oracle notes who was admitted what, by whom, and who saw
// what.

const WINDOW_MS = 1000
const WINDOW_MICROS = WINDOW_MS * MICROS_PER_MS

const nodeNumber = fc.integer({ min: 0, max: 4 })

const steps = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      do: fc.constant('check'),
      node: nodeNumber,
      cost: fc.integer({ min: 1, max: 8 }),
      partial: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('peek'), node: nodeNumber }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('wait'), ms: fc.integer({ min: 1, max: 400 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('outage'), isUp: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cut'), node: nodeNumber, isCut: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('refund') }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart'), node: nodeNumber }) },
)

type Step = typeof steps extends fc.Arbitrary<infer T> ? T : never

const schedules = fc.record({
  nodes: fc.integer({ min: 1, max: 5 }),
  limit: fc.integer({ min: 1, max: 60 }),
  /** Nodes that are counted and do not decide. */
  idle: fc.integer({ min: 0, max: 1 }),
  steps: fc.array(steps, { minLength: 20, maxLength: 150, size: 'max' }),
})

/** Units that were admitted, or that a node has seen or forgotten, in the order in which it happened. */
interface Entry {
  readonly kind: 'store' | 'local' | 'seen' | 'restart'
  readonly node: number
  readonly at: number
  /** Less what was given back. */
  units: number
}

/** Plays a schedule on nodes that share a rule, and notes what happened. */
class Trial {
  readonly entries: Entry[] = []
  readonly nodes: LocalNodes
  readonly count: number
  readonly #rule: Rule
  readonly #cut: boolean[]
  readonly #limiters: Limiter<'async'>[]
  #last: { readonly decision: Decision; readonly entry: Entry; readonly by: Limiter<'async'> } | undefined

  constructor(rule: Rule, { count, idle }: { readonly count: number; readonly idle: number }) {
    this.count = count
    this.nodes = new LocalNodes(count + idle)
    this.#rule = rule
    this.#cut = Array.from({ length: count }, () => false)
    this.#limiters = Array.from({ length: count }, (_, node) => this.#start(node))
  }

  async play(step: Step): Promise<void> {
    const node = 'node' in step ? step.node % this.count : 0
    if (step.do === 'check') await this.#check(node, step as { cost: number; partial: boolean })
    else if (step.do === 'peek') await this.#peek(node)
    else if (step.do === 'wait') this.nodes.clock.advance((step as { ms: number }).ms)
    else if (step.do === 'outage') this.nodes.isUp = (step as { isUp: boolean }).isUp
    else if (step.do === 'cut') this.#cut[node] = (step as { isCut: boolean }).isCut
    else if (step.do === 'refund') await this.#refund()
    else this.#restart(node)
  }

  async #check(node: number, options: { cost: number; partial: boolean }): Promise<void> {
    const by = this.#limiters[node]!
    const decision = await by.check('key', { cost: options.cost, partial: options.partial })
    const isLocal = decision.failure !== undefined
    if (!isLocal) this.#note('seen', node, 0)
    const entry = this.#note(isLocal ? 'local' : 'store', node, decision.cost)
    if (decision.allowed) this.#last = { decision, entry, by }
  }

  async #peek(node: number): Promise<void> {
    const { failure } = await this.#limiters[node]!.peek('key', { cost: 0 })
    if (failure === undefined) this.#note('seen', node, 0)
  }

  async #refund(): Promise<void> {
    if (this.#last === undefined) return
    const { decision, entry, by } = this.#last
    this.#last = undefined
    try {
      entry.units += (await by.refund(decision)).corrected
    } catch {
      // The store is unavailable: the charge stands.
    }
  }

  #restart(node: number): void {
    this.#note('restart', node, 0)
    this.#limiters[node] = this.#start(node)
  }

  #start(node: number): Limiter<'async'> {
    return this.nodes.limiter(
      this.#rule,
      this.nodes.store({}, () => !this.#cut[node]),
    )
  }

  #note(kind: Entry['kind'], node: number, units: number): Entry {
    const entry = { kind, node, at: this.nodes.clock.nowMicros(), units }
    this.entries.push(entry)
    return entry
  }
}

type Inside = (entry: Entry) => boolean

const EVERYWHERE: Inside = () => true

/** Units of the entries from `start` to before `end` that are inside and of the kind, over all nodes but one. */
function unitsOf(
  { entries }: Trial,
  {
    start = 0,
    end = entries.length,
    kind,
    but = -1,
  }: { start?: number; end?: number; kind?: Entry['kind']; but?: number },
  isInside: Inside,
): number {
  let units = 0
  for (let index = start; index < end; index++) {
    const entry = entries[index]!
    if ((kind ?? entry.kind) === entry.kind && entry.node !== but && isInside(entry)) units += entry.units
  }
  return units
}

/** Units admitted by the store, before the entry `end`, that nodes have not seen: u_1 + ... + u_n of the record. */
function unseenUnits(trial: Trial, end: number, isInside: Inside): number {
  let unseen = 0
  for (let node = 0; node < trial.count; node++) {
    let start = end - 1
    while (start >= 0 && !(trial.entries[start]!.node === node && hasSight(trial.entries[start]!))) start--
    const sight = trial.entries[start]
    const hasSeen = sight?.kind === 'seen' && isInside(sight)
    // A node that has seen the key knows what it took itself; one that has not knows nothing.
    unseen += unitsOf(trial, hasSeen ? { start, end, kind: 'store', but: node } : { end, kind: 'store' }, isInside)
  }
  return unseen
}

function hasSight({ kind }: Entry): boolean {
  return kind === 'seen' || kind === 'restart'
}

/** What may be admitted inside of a window, by the formula of the record. */
function boundOf(trial: Trial, limit: number, isInside: Inside): number {
  const { entries, count } = trial
  const first = entries.findIndex((entry) => entry.kind === 'local' && isInside(entry))
  if (first === -1) return limit
  const unseen = unseenUnits(trial, first, isInside)
  const storeLater = unitsOf(trial, { start: first, kind: 'store' }, isInside)
  const restarts = entries.filter((entry, index) => index > first && entry.kind === 'restart' && isInside(entry)).length
  const bound = Math.min(limit + count - 1 + unseen / count + storeLater, 2 * limit + count - 1)
  return bound + restarts * Math.ceil(limit / count)
}

function checkBound(trial: Trial, limit: number, isInside: Inside): void {
  const admitted = unitsOf(trial, {}, isInside)
  const bound = boundOf(trial, limit, isInside)
  if (admitted > bound) expect.fail(`${admitted} were admitted, more than ${bound}`)
}

it('no fixed window admits more than the bound', async () => {
  await fc.assert(
    fc.asyncProperty(schedules, async ({ nodes: count, limit, idle, steps: schedule }) => {
      const trial = new Trial({ algorithm: 'fixed-window', limit, window: WINDOW_MS }, { count, idle })
      for (const step of schedule) await trial.play(step)
      const windows = new Set(trial.entries.map(({ at }) => Math.floor(at / WINDOW_MICROS)))
      for (const window of windows) {
        const isInside = ({ at }: Entry): boolean => Math.floor(at / WINDOW_MICROS) === window
        checkBound(trial, limit, isInside)
      }
    }),
    { numRuns: 300 },
  )
})

it.each<[string, Partial<Rule>]>([
  ['log', {}],
  ['segments', { segments: 5 }],
])('no interval of the length of a sliding window admits more than the bound: %s', async (_name, more) => {
  await fc.assert(
    fc.asyncProperty(schedules, async ({ nodes: count, limit, idle, steps: schedule }) => {
      const rule = { algorithm: 'sliding-window-log', limit, window: WINDOW_MS, ...more } as Rule
      const trial = new Trial(rule, { count, idle })
      for (const step of schedule) await trial.play(step)
      for (const end of new Set(trial.entries.map(({ at }) => at))) {
        const isInside = ({ at }: Entry): boolean => at > end - WINDOW_MICROS && at <= end
        checkBound(trial, limit, isInside)
      }
    }),
    { numRuns: 1000 },
  )
})

it.each<[string, (limit: number) => Rule]>([
  ['gcra', (limit) => ({ limit, window: WINDOW_MS })],
  ['token-bucket', (limit) => ({ algorithm: 'token-bucket', capacity: limit, refillPerSecond: limit })],
  ['leaky-bucket-queue', (limit) => ({ algorithm: 'leaky-bucket-queue', capacity: limit, ratePerSecond: limit })],
])('an outage admits no more of a level than the store had, what flows, and the bound: %s', async (_name, ruleOf) => {
  await fc.assert(
    fc.asyncProperty(schedules, schedules, async ({ nodes: count, limit, idle, steps: before }, { steps: during }) => {
      const trial = new Trial(ruleOf(limit), { count, idle })
      for (const step of before) await trial.play(step)
      trial.nodes.isUp = true
      const available = (await trial.nodes.limiter(ruleOf(limit)).peek('key', { cost: 0 })).remaining!
      const { clock } = trial.nodes
      const startAt = clock.nowMicros()
      const start = trial.entries.length
      const unseen = unseenUnits(trial, start, EVERYWHERE)
      trial.nodes.isUp = false
      for (const step of during) if (step.do !== 'outage' && step.do !== 'restart') await trial.play(step)
      const flowed = (limit * (clock.nowMicros() - startAt)) / WINDOW_MICROS
      const admitted = unitsOf(trial, { start }, EVERYWHERE)
      // A whole unit of what was available is rounded off.
      expect(admitted).toBeLessThanOrEqual(available + 1 + count - 1 + unseen / count + flowed)
      expect(admitted).toBeLessThanOrEqual(limit + count - 1 + flowed)
    }),
    { numRuns: 100 },
  )
})

const slotSteps = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant('take'), node: nodeNumber, slots: fc.integer({ min: 1, max: 4 }) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('release'), which: fc.nat(100) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('renew'), which: fc.nat(100) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('wait'), ms: fc.integer({ min: 1, max: 400 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('outage'), isUp: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cut'), node: nodeNumber, isCut: fc.boolean() }) },
)

/** A lease of slots. */
interface Slots {
  readonly isLocal: boolean
  readonly node: number
  readonly slots: number
  /** When it was taken, and taken or renewed last: the number of the step. */
  readonly takenStep: number
  renewedStep: number
  renewedAt: number
  /** When each node had last seen the slots in the store, when it was taken. */
  readonly seen: readonly Sight[]
  readonly reservation: Reservation<'async'>
}

interface Sight {
  /** -1 for never. */
  readonly step: number
  readonly at: number
}

const LEASE_MICROS = WINDOW_MICROS

/** Slots on nodes that share a limit, and who has seen what. */
class SlotTrial {
  readonly nodes: LocalNodes
  readonly #limit: number
  readonly #cut: boolean[]
  readonly #limiters: Limiter<'async'>[]
  readonly #seen: Sight[]
  #held: Slots[] = []
  #step = 0

  constructor(count: number, limit: number) {
    this.nodes = new LocalNodes(count)
    this.#limit = limit
    this.#cut = Array.from({ length: count }, () => false)
    this.#seen = Array.from({ length: count }, () => ({ step: -1, at: 0 }))
    const rule = { algorithm: 'concurrency', limit, lease: WINDOW_MS } as const
    this.#limiters = Array.from({ length: count }, (_, node) =>
      this.nodes.limiter(
        rule,
        this.nodes.store({}, () => !this.#cut[node]),
      ),
    )
  }

  async play(step: { do: string; node?: number; slots?: number; which?: number; ms?: number }): Promise<void> {
    this.#step++
    const node = (step.node ?? 0) % this.#limiters.length
    const held = this.#alive()
    const chosen = held[(step.which ?? 0) % Math.max(1, held.length)]
    if (step.do === 'take') await this.#take(node, step.slots!)
    else if (step.do === 'release' && chosen !== undefined) await this.#release(chosen)
    else if (step.do === 'renew' && chosen !== undefined) await this.#renew(chosen)
    else if (step.do === 'wait') this.nodes.clock.advance(step.ms!)
    else if (step.do === 'outage') this.nodes.isUp = (step as { isUp?: boolean }).isUp === true
    else if (step.do === 'cut') this.#cut[node] = (step as { isCut?: boolean }).isCut === true
    this.#check()
  }

  async #take(node: number, slots: number): Promise<void> {
    const answer = await this.#limiters[node]!.reserve('key', { cost: slots })
    const at = this.nodes.clock.nowMicros()
    const isLocal = ('decision' in answer ? answer.decision : answer).failure !== undefined
    if (!isLocal) this.#seen[node] = { step: this.#step, at }
    if (!('decision' in answer)) return
    const since = { takenStep: this.#step, renewedStep: this.#step, renewedAt: at }
    this.#held.push({ isLocal, node, slots, ...since, seen: [...this.#seen], reservation: answer })
  }

  async #release(chosen: Slots): Promise<void> {
    // A slot that cannot be released stays taken until its lease ends.
    const outcome = await chosen.reservation.release().catch(() => undefined)
    if (outcome !== undefined) this.#held = this.#held.filter((slots) => slots !== chosen)
  }

  async #renew(chosen: Slots): Promise<void> {
    const outcome = await chosen.reservation.renew().catch(() => undefined)
    if (outcome?.outcome !== 'settled') return
    chosen.renewedStep = this.#step
    chosen.renewedAt = this.nodes.clock.nowMicros()
  }

  #alive(): Slots[] {
    const now = this.nodes.clock.nowMicros()
    this.#held = this.#held.filter(({ renewedAt }) => renewedAt + LEASE_MICROS > now)
    return this.#held
  }

  #check(): void {
    const held = this.#alive()
    // Leases are in the order in which they were taken.
    const first = held.find(({ isLocal }) => isLocal)
    const count = this.#limiters.length
    let bound = this.#limit
    if (first !== undefined) {
      const inStore = held.filter(({ isLocal }) => !isLocal)
      const earlier = inStore.filter(({ takenStep }) => takenStep < first.takenStep)
      const later = inStore.filter(({ takenStep }) => takenStep > first.takenStep)
      bound += count - 1 + this.#unseen(earlier, first.seen) / count + slotsOf(later)
      bound = Math.min(bound, 2 * this.#limit + count - 1)
    }
    const admitted = slotsOf(held)
    if (admitted > bound) expect.fail(`${admitted} slots are held, more than ${bound}`)
  }

  /** Slots of the store that others took or renewed since each node last saw them. */
  #unseen(inStore: readonly Slots[], seen: readonly Sight[]): number {
    const now = this.nodes.clock.nowMicros()
    return seen.reduce((total, { step, at }, node) => {
      const hasSeen = step >= 0 && at + LEASE_MICROS > now
      return total + slotsOf(inStore.filter((slots) => !hasSeen || (slots.node !== node && slots.renewedStep > step)))
    }, 0)
  }
}

function slotsOf(held: readonly Slots[]): number {
  return held.reduce((total, { slots }) => total + slots, 0)
}

it('no instant has more slots held than the bound', async () => {
  const cases = fc.record({
    nodes: fc.integer({ min: 1, max: 5 }),
    limit: fc.integer({ min: 1, max: 20 }),
    steps: fc.array(slotSteps, { minLength: 20, maxLength: 150, size: 'max' }),
  })
  await fc.assert(
    fc.asyncProperty(cases, async ({ nodes, limit, steps: schedule }) => {
      const trial = new SlotTrial(nodes, limit)
      for (const step of schedule) await trial.play(step)
    }),
    { numRuns: 300 },
  )
})
