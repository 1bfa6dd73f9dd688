import { SluiceError } from '@sluice/core'
import type { Ask, Batch, Item, LeasedUnits } from '@sluice/core/internal'
import { algorithmOf, decideBesideLeases, MICROS_PER_UNIT, NEVER } from '@sluice/core/internal'
import { codeOf } from '../wire/limit-encoding.ts'
import type { Question, QuestionGroup } from './batch-group.ts'
import type { Plan } from './bulk-limits.ts'

/** Why the script could not decide yet: reservations have run out, or the calendar does not reach. */
export type NotYet = 'holds' | 'calendar'

const NOT_DECIDED = 65_535

/** The version of a record whose levels share an instant. */
const SHARED = 2

/** How a subject of a run is answered. */
const NOTHING = 0
const RECORD = 1
const IN_GENERAL = 3
const CHARGED = 4

/** What follows about an item. */
const HAS_STATE = 1
const HAS_BLOCK = 2
const HAS_LEASES = 4
const WOULD_ALLOW = 8

const NO_LEASES: LeasedUnits = { units: 0, soonestEnd: 0 }

/** What the script saw of one item. */
class Seen {
  state: number[]
  leased: LeasedUnits = NO_LEASES
  blockedUntil = 0
  /** Whether the answer came with it, and need not be worked out. */
  answersItself = false

  constructor(state: number[]) {
    this.state = state
  }
}

/**
 * Reads the reply of the deciding script. It says how many of a group's questions were admitted and what it saw; what each
 * caller is told follows from that by the functions that decide in memory, which the script is held equal to.
 */
export class DecideReply {
  readonly #bytes: Buffer
  readonly now: number
  #at = 8
  #scratchPlan: Plan | undefined = undefined
  #scratchSeen: Seen[] = []

  constructor(bytes: Buffer) {
    this.#bytes = bytes
    this.now = bytes.readDoubleLE(0)
  }

  /** Answers the next subject of a run. Returns why not when it was not decided. */
  answerRun(group: QuestionGroup, plan: Plan): NotYet | undefined {
    const admitted = this.#uint16()
    const how = this.#uint8()
    if (how === IN_GENERAL) return this.answer(group)
    const seen = this.#scratch(plan)
    if (how === RECORD) this.#readRecord(plan, seen)
    else if (how === CHARGED) this.#readCharged(seen, admitted * group.first.items[0]!.cost)
    else if (how === NOTHING) for (const item of seen) item.state = []
    else for (const [index, size] of plan.sizes.entries()) this.#readValues(seen[index]!.state, size)
    this.#tell(group.head, admitted, seen)
    return undefined
  }

  /** What was seen of a subject is needed until its answers are written, so subjects of one plan share the place for it. */
  #scratch(plan: Plan): Seen[] {
    if (plan !== this.#scratchPlan) {
      this.#scratchPlan = plan
      this.#scratchSeen = plan.sizes.map(() => new Seen([]))
    }
    return this.#scratchSeen
  }

  /** Reads the states in a record that has those of a plan and nothing else. See lua/includes/records.lua. */
  #readRecord(plan: Plan, seen: readonly Seen[]): void {
    const isShared = this.#bytes[this.#at] === SHARED
    this.#at += plan.headerBytes
    const at = isShared ? this.#bytes.readDoubleLE(this.#at + 8) : 0
    if (isShared) this.#at += 16
    for (let index = 0; index < seen.length; index++) {
      const { state } = seen[index]!
      if (isShared) {
        state[0] = this.#double()
        state[1] = at
      } else {
        this.#at += 8
        this.#readValues(state, plan.sizes[index]!)
      }
    }
  }

  /** Reads levels as they are after a charge: they were lower by that, as of the same instant. */
  #readCharged(seen: readonly Seen[], units: number): void {
    const at = this.#bytes.readDoubleLE(this.#at + 8)
    this.#at += 16
    for (let index = 0; index < seen.length; index++) {
      const { state } = seen[index]!
      state[0] = this.#double() - units * MICROS_PER_UNIT
      state[1] = at
    }
  }

  /** Reads a state of so many values. */
  #readValues(state: number[], size: number): void {
    for (let index = 0; index < size; index++) state[index] = this.#double()
  }

  /** Answers the next question: writes into its batches. Returns why not when it was not decided. */
  answer(group: QuestionGroup): NotYet | undefined {
    const admitted = this.#uint16()
    if (admitted === NOT_DECIDED) return this.#uint8() === 1 ? 'holds' : 'calendar'
    const { first } = group
    if (first.partial) lowerCosts(first, this.#double())
    this.#tell(
      group.head,
      admitted,
      first.items.map((item) => this.#item(item)),
    )
    return undefined
  }

  /** Writes the answers of questions that asked the same, in order. */
  #tell(head: Question, admitted: number, seen: readonly Seen[]): void {
    let number = 0
    for (let question: Question | undefined = head; question !== undefined; question = question.next) {
      const { sheet } = question
      sheet.now = this.now
      // Questions that charge nothing leave the same room to each other: all of them are admitted, or none.
      sheet.allowed = sheet.charge ? number++ < admitted : admitted > 0
      decideItems(sheet, seen)
      if (sheet.allowed && sheet.charge && question.next !== undefined) moveOn(sheet, seen)
    }
  }

  #item(item: Item): Seen {
    const code = codeOf(item.limit)
    const head = this.#uint8()
    const seen = new Seen([])
    if (head & HAS_BLOCK) seen.blockedUntil = this.#double()
    if (head & HAS_LEASES) seen.leased = { units: this.#double(), soonestEnd: this.#double() }
    if (code.answersItself) {
      seen.answersItself = true
      this.#answerOf(item, (head & WOULD_ALLOW) > 0)
    } else if (head & HAS_STATE) {
      this.#readValues(seen.state, code.smallSize)
      const count = code.hasList ? this.#uint16() : 0
      for (let index = 0; index < count; index++) seen.state.push(this.#double())
    }
    return seen
  }

  /** The answer of a limit whose state stays on the server. */
  #answerOf({ verdict }: Item, wouldAllow: boolean): void {
    verdict.remaining = this.#double()
    verdict.resetAt = this.#double()
    const retryAt = this.#double()
    verdict.retryAt = retryAt < 0 ? NEVER : retryAt
    verdict.freshAt = verdict.resetAt
    verdict.delayMicros = 0
    verdict.mark = 0
    verdict.nextLength = 0
    if (wouldAllow) verdict.ruling = 'allowed'
    else verdict.ruling = retryAt < 0 ? 'never' : 'limit'
  }

  #uint8(): number {
    return this.#bytes[this.#at++]!
  }

  #uint16(): number {
    const value = this.#bytes[this.#at]! + 256 * this.#bytes[this.#at + 1]!
    this.#at += 2
    return value
  }

  #double(): number {
    const value = this.#bytes.readDoubleLE(this.#at)
    this.#at += 8
    return value
  }
}

function lowerCosts(batch: Batch, granted: number): void {
  for (const item of batch.items) item.cost = Math.min(item.cost, granted)
}

/** Used for one question after another. */
const ask: Ask = { now: 0.5, cost: 0, holder: 0, entitled: true }

function decideItems(batch: Batch, seen: readonly Seen[]): void {
  ask.now = batch.now
  ask.holder = batch.holder
  ask.entitled = batch.entitled
  let allowed = true
  for (let index = 0; index < seen.length; index++) {
    const item = batch.items[index]!
    const { state, leased, blockedUntil, answersItself } = seen[index]!
    item.blockedUntil = blockedUntil
    ask.cost = item.cost
    if (!answersItself) {
      if (leased.units === 0) algorithmOf(item.limit).decide(state, item.limit, ask, item.verdict)
      else decideBesideLeases(state, item.limit, { ask, leased }, item.verdict)
    }
    if (item.verdict.ruling !== 'allowed' || blockedUntil > 0) allowed = false
  }
  if (allowed !== batch.allowed) throw disagreement(batch)
}

/** After an allowed question, the next of its group finds what it left. States are this reply's own, so they are changed. */
function moveOn(batch: Batch, seen: readonly Seen[]): void {
  for (let index = 0; index < seen.length; index++) {
    const { verdict, cost } = batch.items[index]!
    if (cost === 0) continue
    const { state } = seen[index]!
    for (let place = 0; place < verdict.nextLength; place++) state[place] = verdict.next[place]!
  }
}

/** The script and this process are of different minds: not a state to go on from in silence. */
function disagreement(batch: Batch): SluiceError {
  return new SluiceError('SLUICE_PROTOCOL', {
    problem: 'Redis and this process decided differently',
    received: `${batch.allowed ? 'allowed' : 'refused'} by Redis, under ${batch.items.map((item) => item.limit.id).join(', ')}`,
    expected: 'the same decision from the same state',
    action: 'Run the same version of Sluice on all nodes, under one key prefix. If they are, please report it.',
  })
}
