import type { PendingBatch } from '@sluice/core/internal'
import type { Batch, Limit } from '@sluice/core/store'
import { encodingOf } from '../wire/call-encoding.ts'

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
    const { items } = pending.batch
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

/** A call with one batch. */
export function singleCall(pending: PendingBatch): DecideCall {
  const group = new BatchGroup(pending)
  const { bulkLimits } = group
  if (bulkLimits === undefined) return { bulkChecks: [], groups: [group] }
  return { bulkChecks: [{ limits: bulkLimits, cost: pending.batch.items[0]!.cost, groups: [group] }], groups: [] }
}

/** All groups of a call, in the order of decisions. */
export function groupsIn(call: DecideCall): readonly BatchGroup[] {
  return call.bulkChecks.length === 1 && call.groups.length === 0
    ? call.bulkChecks[0]!.groups
    : [...call.bulkChecks.flatMap((check) => check.groups), ...call.groups]
}

/**
 * Batches with the same limits, keys and costs, sent once with their number: the script replies how many it admits.
 * Each batch gets the decision it would have got alone.
 *
 * A linked list and not an array: V8 would allocate an array literal per batch in the old generation, because all
 * in-flight ones survive the first collections. From there they keep short-lived objects alive, and collections take 20
 * times as long.
 */
export class BatchGroup {
  head: PendingBatch
  #tail: PendingBatch
  size = 1
  /** The limits, when a bulk check supports them; undefined when the group must be sent as a general batch. */
  readonly bulkLimits: BulkLimits | undefined
  /** Whether nothing in it belongs to a single caller, so that it can stand for several batches. */
  readonly isShareable: boolean
  /** Its position in the call: the index of a bulk check, or infinity among the general batches. */
  position = 0
  /** How often the script has replied that it cannot decide yet. */
  attempts = 0

  constructor(pending: PendingBatch) {
    this.head = pending
    this.#tail = pending
    this.bulkLimits = isSimple(pending.batch) ? bulkLimitsOf(pending.batch) : undefined
    this.isShareable = this.bulkLimits !== undefined || isShareable(pending.batch)
  }

  /** The first batch. All others are equal to it. */
  get first(): Batch {
    return this.head.batch
  }

  /** Adds an equal batch. Returns false when it is not equal, or when it must be sent on its own. */
  join(pending: PendingBatch): boolean {
    if (!this.isShareable || this.size >= MAX_SIZE || !isEqual(this.first, pending.batch)) return false
    this.#tail.next = pending
    this.#tail = pending
    this.size++
    return true
  }

  get hasAbandoned(): boolean {
    for (let pending: PendingBatch | undefined = this.head; pending !== undefined; pending = pending.next) {
      if (pending.isAbandoned) return true
    }
    return false
  }

  markSent(): void {
    for (let pending: PendingBatch | undefined = this.head; pending !== undefined; pending = pending.next) {
      pending.isSent = true
    }
  }

  /** Removes the abandoned batches. Returns whether any is left. */
  dropAbandoned(): boolean {
    const wanted: PendingBatch[] = []
    for (let pending: PendingBatch | undefined = this.head; pending !== undefined; pending = pending.next) {
      if (!pending.isAbandoned) wanted.push(pending)
    }
    this.size = wanted.length
    for (const [index, pending] of wanted.entries()) pending.next = wanted[index + 1]
    this.head = wanted[0] ?? this.head
    this.#tail = wanted.at(-1) ?? this.#tail
    return wanted.length > 0
  }

  /** Completes all batches. */
  complete(): void {
    for (let pending: PendingBatch | undefined = this.head; pending !== undefined; ) {
      const next: PendingBatch | undefined = pending.next
      pending.next = undefined
      try {
        pending.complete()
      } catch (error) {
        // It must not cost the other callers their decisions.
        pending.fail(error)
      }
      pending = next
    }
  }

  /** Fails all batches. */
  fail(error: unknown): void {
    for (let pending: PendingBatch | undefined = this.head; pending !== undefined; ) {
      const next: PendingBatch | undefined = pending.next
      pending.next = undefined
      pending.fail(error)
      pending = next
    }
  }
}

/** A 16-bit count, whose last value means "not decided". */
const MAX_SIZE = 65_534

/** Whether a batch has no holder, reservation or lease, and must be admitted in full. */
function isSimple(batch: Batch): boolean {
  return !(batch.partial || batch.holder !== 0 || batch.holdMicros > 0 || batch.leaseMicros > 0)
}

function isShareable(batch: Batch): boolean {
  return isSimple(batch) && batch.items.every((item) => !encodingOf(item.limit).hasList)
}

function isEqual(one: Batch, other: Batch): boolean {
  if (other.charge !== one.charge || other.entitled !== one.entitled || other.items.length !== one.items.length)
    return false
  if (!isSimple(other)) return false
  for (let index = 0; index < one.items.length; index++) {
    const a = one.items[index]!
    const b = other.items[index]!
    if (a.limit !== b.limit || a.cost !== b.cost || a.key !== b.key) return false
  }
  return true
}

/** Maximum number of limits of a bulk check. */
const MAX_LIMITS = 64

/** The limits of a batch about one key that a bulk check supports: buckets and simple windows only. */
export interface BulkLimits {
  readonly limits: readonly Limit[]
  /** Number of values in the state of each limit. */
  readonly sizes: readonly number[]
  /** Bytes before the first value in a record that holds these limits and nothing else. */
  readonly headerBytes: number
}

/**
 * A trie of limits in order, one level per limit. Weak, because overrides and tiers create limits that are dropped
 * later: an entry lives as long as all its limits do.
 */
class TrieNode {
  #next: WeakMap<Limit, TrieNode> | undefined = undefined
  entry: BulkLimits | undefined = undefined

  after(limit: Limit): TrieNode {
    this.#next ??= new WeakMap()
    let node = this.#next.get(limit)
    if (node === undefined) {
      node = new TrieNode()
      this.#next.set(limit, node)
    }
    return node
  }
}

const root = new TrieNode()

/** The result of the last call: consecutive batches mostly have the same limits. */
let last: BulkLimits | undefined

/**
 * The limits of a batch, the same object for the same limits. Undefined when a bulk check does not support the batch.
 */
export function bulkLimitsOf(batch: Batch): BulkLimits | undefined {
  const { items } = batch
  const { key, cost } = items[0]!
  if (!batch.charge || cost === 0 || items.length > MAX_LIMITS) return undefined
  for (let index = 1; index < items.length; index++) {
    if (items[index]!.key !== key || items[index]!.cost !== cost) return undefined
  }
  if (last !== undefined && hasLimits(items, last.limits)) return last
  if (!items.every((item) => isSupported(item.limit))) return undefined
  let node = root
  for (let index = 0; index < items.length; index++) node = node.after(items[index]!.limit)
  node.entry ??= createBulkLimits(batch)
  last = node.entry
  return last
}

function createBulkLimits({ items }: Batch): BulkLimits {
  const limits = items.map((item) => item.limit)
  return { limits, sizes: limits.map((limit) => limit.stateSize), headerBytes: 3 + 10 * limits.length }
}

function hasLimits(items: Batch['items'], limits: readonly Limit[]): boolean {
  if (limits.length !== items.length) return false
  for (let index = 0; index < items.length; index++) if (items[index]!.limit !== limits[index]) return false
  return true
}

/** Whether the fast paths of lua/decide.lua read a limit. */
function isSupported(limit: Limit): boolean {
  switch (limit.algorithm) {
    case 'token-bucket':
    case 'leaky-bucket-meter':
    case 'gcra':
    case 'sliding-window-counter':
      return true
    case 'fixed-window':
      return typeof limit.window === 'number' && limit.rolloverMax === 0
    default:
      return false
  }
}
