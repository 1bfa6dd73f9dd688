import type { Batch } from '@sluice/core/internal'
import type { Question } from './batch-group.ts'
import { QuestionGroup } from './batch-group.ts'
import type { Plan } from './bulk-limits.ts'

/** Subjects that are asked about the same limits at the same cost. */
export interface Run {
  readonly plan: Plan
  readonly cost: number
  readonly groups: QuestionGroup[]
}

/** What goes out in one call: runs first, then questions that are asked in the general way. */
export interface CallPlan {
  readonly runs: readonly Run[]
  readonly groups: readonly QuestionGroup[]
}

/**
 * The questions of one turn of the event loop, in the order they will be decided in. Questions about one key are decided in
 * the order they were asked.
 */
export class Turn {
  readonly #runs: Run[] = []
  readonly #groups: QuestionGroup[] = []
  readonly #lastOf = new Map<string, QuestionGroup>()
  #newest: QuestionGroup | undefined
  #subjects = 0

  /** Subjects asked about, each as often as it needs a place in a call; those of a general question by its items. */
  get size(): number {
    return this.#subjects
  }

  add(question: Question): void {
    const { items } = question.sheet
    // The newest is the last of all its keys, and a busy key is often asked about again at once.
    const newest = this.#newest
    if (newest !== undefined && newest.first.items[0]!.key === items[0]!.key && newest.join(question)) return
    const last = this.#lastOf.get(items[0]!.key)
    if (last !== undefined && this.#isLastOfAll(last, items) && last.join(question)) return
    this.addGroup(new QuestionGroup(question))
  }

  /** Adds questions that stay together. */
  addGroup(group: QuestionGroup): void {
    const { items } = group.first
    const { plan } = group
    this.#subjects += plan === undefined ? items.length : 1
    this.#newest = group
    const last = plan === undefined ? undefined : this.#lastOf.get(items[0]!.key)
    if (plan === undefined || last?.place === Number.POSITIVE_INFINITY) {
      group.place = Number.POSITIVE_INFINITY
      this.#groups.push(group)
      for (const { key } of items) this.#lastOf.set(key, group)
      return
    }
    // Runs go out in order, and all of them before the general questions.
    group.place = this.#runFor(plan, items[0]!.cost, last === undefined ? 0 : last.place + 1)
    this.#runs[group.place]!.groups.push(group)
    this.#lastOf.set(items[0]!.key, group)
  }

  /**
   * The calls that ask everything, with about so many subjects in each: a question about several is not divided. In a cluster,
   * with one subject in each.
   */
  calls(mostSubjects: number, oneSubject: boolean): CallPlan[] {
    if (oneSubject) return this.#callsByKey()
    const calls: { runs: Run[]; groups: QuestionGroup[] }[] = []
    let room = 0
    const open = (): { runs: Run[]; groups: QuestionGroup[] } => {
      if (room <= 0) {
        calls.push({ runs: [], groups: [] })
        room = mostSubjects
      }
      return calls.at(-1)!
    }
    for (const run of this.#runs) {
      for (let first = 0; first < run.groups.length; ) {
        const call = open()
        const groups = run.groups.slice(first, first + room)
        call.runs.push({ ...run, groups })
        first += groups.length
        room -= groups.length
      }
    }
    for (const group of this.#groups) {
      open().groups.push(group)
      room -= group.first.items.length
    }
    return calls
  }

  #callsByKey(): CallPlan[] {
    const calls = new Map<string, { runs: Run[]; groups: QuestionGroup[] }>()
    const callOf = (group: QuestionGroup): { runs: Run[]; groups: QuestionGroup[] } => {
      const { key } = group.first.items[0]!
      let call = calls.get(key)
      if (call === undefined) {
        call = { runs: [], groups: [] }
        calls.set(key, call)
      }
      return call
    }
    for (const run of this.#runs) for (const group of run.groups) callOf(group).runs.push({ ...run, groups: [group] })
    for (const group of this.#groups) callOf(group).groups.push(group)
    return [...calls.values()]
  }

  /** Whether no later group asks about any of the keys, so that order is kept when this one takes in another question. */
  #isLastOfAll(group: QuestionGroup, items: Batch['items']): boolean {
    for (let index = 1; index < items.length; index++) {
      if (items[index]!.key !== items[0]!.key && this.#lastOf.get(items[index]!.key) !== group) return false
    }
    return true
  }

  /** The number of a run of the plan and cost, not before `earliest`. */
  #runFor(plan: Plan, cost: number, earliest: number): number {
    for (let run = this.#runs.length - 1; run >= earliest; run--) {
      if (this.#runs[run]!.plan === plan && this.#runs[run]!.cost === cost) return run
    }
    return this.#runs.push({ plan, cost, groups: [] }) - 1
  }
}
