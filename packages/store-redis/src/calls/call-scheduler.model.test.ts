import type { PendingBatch } from '@sluice/core/internal'
import { compileRule, createBatch, createItem } from '@sluice/core/internal'
import { seededRandom } from '@sluice/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { runAfterIo } from '../system/event-loop.ts'
import type { DecideCall } from './call-builder.ts'
import { CallScheduler } from './call-scheduler.ts'
import { DecideReply } from './decide-call.ts'

// Whatever happens in whatever order, every batch ends once, and those about one key leave in the order they were asked
// in.

const LIMIT = compileRule('rule', { limit: 1000, window: '1m' })[0]!

interface Asked {
  readonly number: number
  readonly key: string
  ends: number
  sent: number
  isAbandoned: boolean
}

/** What can happen, in any order. */
const STEPS = [
  'ask',
  'ask',
  'burst',
  'answer',
  'answer',
  'answer several',
  'fail',
  'turn',
  'turn',
  'time',
  'abandon',
] as const

/** A scheduler whose surroundings do everything that they may. */
class Surroundings {
  readonly asked = new Map<PendingBatch, Asked>()
  /** Numbers of what left, by key. */
  readonly left = new Map<string, number[]>()
  readonly #random: () => number
  readonly #keys: number
  readonly #scheduler: CallScheduler
  readonly #underWay: { readonly resolve: (reply: DecideReply) => void; readonly reject: (error: unknown) => void }[] =
    []
  readonly #turnEnds: (() => void)[] = []
  readonly #timers: { readonly dueMs: number; readonly run: () => void }[] = []
  #nowMs = 0

  constructor(options: { isCluster: boolean; writesLater: boolean; keys: number; seed: number }) {
    const random = seededRandom(options.seed)
    this.#random = () => random.nextUint32() / 2 ** 32
    this.#keys = options.keys
    this.#scheduler = new CallScheduler({
      isCluster: options.isCluster,
      writesLater: options.writesLater,
      monotonicMs: () => this.#nowMs,
      runAfterIo: (run) => void this.#turnEnds.push(run),
      timers: { schedule: (ms, run) => this.#schedule(ms, run) },
      call: (call) => this.#call(call),
      answered: (call) => eachGroup(call, (group) => group.complete()),
      failed: (call, error) => eachGroup(call, (group) => group.fail(error)),
    })
  }

  async take(step: (typeof STEPS)[number]): Promise<void> {
    if (step === 'ask') this.ask(1 + this.#below(3))
    if (step === 'burst') this.ask(20 + this.#below(200))
    if (step === 'answer') this.#answer(1)
    if (step === 'answer several') this.#answer(3)
    if (step === 'fail') this.#underWay.shift()?.reject('an outage')
    if (step === 'turn') this.#endTurn()
    if (step === 'time') this.#advance()
    if (step === 'abandon') this.#abandonSome()
    if (this.#below(3) > 0) await promisesSettled()
  }

  ask(count: number): void {
    for (let index = 0; index < count; index++) {
      const key = `key-${this.#below(this.#keys)}`
      const note: Asked = { number: this.asked.size, key, ends: 0, sent: 0, isAbandoned: false }
      const complete = (): void => {
        note.ends++
        // Some callers ask again. Some callbacks throw: the scheduler must report the error.
        if (this.#below(4) === 0) this.ask(1)
        if (this.#below(50) > 0) return
        note.ends--
        throw new Error('of the callback')
      }
      const batch: PendingBatch = {
        batch: createBatch([createItem(LIMIT, key, 1)]),
        isSent: false,
        get isAbandoned() {
          return note.isAbandoned
        },
        next: undefined,
        complete,
        fail: () => void note.ends++,
      }
      this.asked.set(batch, note)
      this.#scheduler.add(batch)
    }
  }

  /** Lets everything come to its end, without time going on. */
  async drain(): Promise<void> {
    for (let round = 0; round < 10_000; round++) {
      await promisesSettled()
      if (this.#turnEnds.length > 0) this.#endTurn()
      else if (this.#underWay.length > 0) this.#answer(1)
      else return
    }
  }

  #call(call: DecideCall): Promise<DecideReply> {
    eachGroup(call, (group) => {
      for (let batch: PendingBatch | undefined = group.head; batch !== undefined; batch = batch.next) {
        const note = this.asked.get(batch)!
        note.sent++
        expect(note.isAbandoned).toBe(false)
        this.left.set(note.key, [...(this.left.get(note.key) ?? []), note.number])
      }
    })
    return new Promise((resolve, reject) => void this.#underWay.push({ resolve, reject }))
  }

  #answer(count: number): void {
    for (const { resolve } of this.#underWay.splice(0, count)) resolve(new DecideReply(Buffer.alloc(8)))
  }

  #endTurn(): void {
    for (const run of this.#turnEnds.splice(0)) run()
  }

  #advance(): void {
    this.#nowMs += this.#below(12) / 4
    for (const timer of this.#timers.filter(({ dueMs }) => dueMs <= this.#nowMs)) {
      this.#timers.splice(this.#timers.indexOf(timer), 1)
      timer.run()
    }
  }

  #abandonSome(): void {
    for (const [batch, note] of this.asked) {
      if (batch.isSent || this.#below(5) > 0) continue
      note.isAbandoned = true
    }
  }

  #schedule(ms: number, run: () => void): () => void {
    const timer = { dueMs: this.#nowMs + ms, run }
    this.#timers.push(timer)
    return () => void this.#timers.splice(this.#timers.indexOf(timer), 1)
  }

  #below(count: number): number {
    return Math.floor(this.#random() * count)
  }
}

function eachGroup(call: DecideCall, use: (group: DecideCall['groups'][number]) => void): void {
  for (const { groups } of [...call.bulkChecks, call]) for (const group of groups) use(group)
}

function promisesSettled(): Promise<void> {
  return new Promise((resolve) => runAfterIo(resolve))
}

describe.each([
  { isCluster: false, writesLater: false },
  { isCluster: false, writesLater: true },
  { isCluster: true, writesLater: true },
])('batches on their way out, %o', (kind) => {
  it('all leave once, in order, and end, unless they were abandoned before they left', async () => {
    const run = fc.record({
      keys: fc.constantFrom(1, 3, 400),
      seed: fc.nat(),
      steps: fc.array(fc.constantFrom(...STEPS), { maxLength: 80 }),
    })
    await fc.assert(
      fc.asyncProperty(run, async ({ keys, seed, steps }) => {
        const around = new Surroundings({ ...kind, keys, seed })
        for (const step of steps) await around.take(step)
        await around.drain()
        for (const note of around.asked.values()) {
          const once = note.isAbandoned ? 0 : 1
          expect([note.sent, note.ends]).toEqual([once, once])
        }
        for (const numbers of around.left.values())
          expect(numbers).toEqual(numbers.toSorted((one, other) => one - other))
      }),
      { numRuns: 60 },
    )
  })
})
