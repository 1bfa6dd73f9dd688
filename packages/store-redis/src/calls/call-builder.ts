import type { Batch } from '@sluice/core/store'
import type { PendingBatch } from './batch-group.ts'
import { BatchGroup } from './batch-group.ts'
import type { BulkLimits } from './bulk-limits.ts'

/** Keys that are checked against the same limits at the same cost: encoded once for all of them. */
export interface BulkCheck {
  readonly limits: BulkLimits
  readonly cost: number
  readonly groups: BatchGroup[]
}

/** The contents of one call, in the order of decisions: bulk checks first, then general batches. */
export interface DecideCall {
  readonly bulkChecks: readonly BulkCheck[]
  readonly groups: readonly BatchGroup[]
}

interface OpenCall {
  readonly bulkChecks: BulkCheck[]
  readonly groups: BatchGroup[]
}

/** Collects batches and divides them into calls. Batches about one key are decided in the order they were added. */
export class CallBuilder {
  readonly #bulkChecks: BulkCheck[] = []
  readonly #groups: BatchGroup[] = []
  readonly #lastGroupOf = new Map<string, BatchGroup>()
  #newest: BatchGroup | undefined
  #size = 0

  /**
   * The space that the batches need in calls: one per group of a bulk check, the number of items for a general batch.
   */
  get size(): number {
    return this.#size
  }

  add(pending: PendingBatch): void {
    const { items } = pending.sheet
    // The newest group is the last one of all its keys, and consecutive batches often have the same busy key.
    const newest = this.#newest
    if (newest !== undefined && newest.first.items[0]!.key === items[0]!.key && newest.join(pending)) return
    const last = this.#lastGroupOf.get(items[0]!.key)
    if (last !== undefined && this.#isLastOfAll(last, items) && last.join(pending)) return
    this.addGroup(new BatchGroup(pending))
  }

  /** Adds batches that stay together. */
  addGroup(group: BatchGroup): void {
    const { items } = group.first
    const { bulkLimits } = group
    this.#size += bulkLimits === undefined ? items.length : 1
    this.#newest = group
    const last = bulkLimits === undefined ? undefined : this.#lastGroupOf.get(items[0]!.key)
    if (bulkLimits === undefined || last?.position === Number.POSITIVE_INFINITY) {
      group.position = Number.POSITIVE_INFINITY
      this.#groups.push(group)
      for (const { key } of items) this.#lastGroupOf.set(key, group)
      return
    }
    // Bulk checks are decided in order, and all of them before the general batches.
    group.position = this.#bulkCheckFor(bulkLimits, items[0]!.cost, last === undefined ? 0 : last.position + 1)
    this.#bulkChecks[group.position]!.groups.push(group)
    this.#lastGroupOf.set(items[0]!.key, group)
  }

  /** Divides all batches into calls of about `maxSize`: a general batch is not split. */
  build(maxSize: number): DecideCall[] {
    const calls: OpenCall[] = []
    let space = 0
    const open = (): OpenCall => {
      if (space <= 0) {
        calls.push({ bulkChecks: [], groups: [] })
        space = maxSize
      }
      return calls.at(-1)!
    }
    for (const check of this.#bulkChecks) {
      for (let first = 0; first < check.groups.length; ) {
        const call = open()
        const groups = check.groups.slice(first, first + space)
        call.bulkChecks.push({ ...check, groups })
        first += groups.length
        space -= groups.length
      }
    }
    for (const group of this.#groups) {
      open().groups.push(group)
      space -= group.first.items.length
    }
    return calls
  }

  /** Divides all batches into one call per key, as a cluster requires. */
  buildByKey(): DecideCall[] {
    const calls = new Map<string, OpenCall>()
    const callOf = (group: BatchGroup): OpenCall => {
      const { key } = group.first.items[0]!
      let call = calls.get(key)
      if (call === undefined) {
        call = { bulkChecks: [], groups: [] }
        calls.set(key, call)
      }
      return call
    }
    for (const check of this.#bulkChecks)
      for (const group of check.groups) callOf(group).bulkChecks.push({ ...check, groups: [group] })
    for (const group of this.#groups) callOf(group).groups.push(group)
    return [...calls.values()]
  }

  /** Whether no later group has any of the keys, so that order is kept when this group takes another batch. */
  #isLastOfAll(group: BatchGroup, items: Batch['items']): boolean {
    for (let index = 1; index < items.length; index++) {
      if (items[index]!.key !== items[0]!.key && this.#lastGroupOf.get(items[index]!.key) !== group) return false
    }
    return true
  }

  /** The index of the bulk check with these limits and cost, at `earliest` or later. */
  #bulkCheckFor(limits: BulkLimits, cost: number, earliest: number): number {
    for (let index = this.#bulkChecks.length - 1; index >= earliest; index--) {
      if (this.#bulkChecks[index]!.limits === limits && this.#bulkChecks[index]!.cost === cost) return index
    }
    return this.#bulkChecks.push({ limits, cost, groups: [] }) - 1
  }
}

/** All groups of a call, in the order of decisions. */
export function groupsIn(call: DecideCall): readonly BatchGroup[] {
  return call.bulkChecks.length === 1 && call.groups.length === 0
    ? call.bulkChecks[0]!.groups
    : [...call.bulkChecks.flatMap((check) => check.groups), ...call.groups]
}
