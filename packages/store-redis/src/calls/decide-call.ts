import { SluiceError } from '@sluice/core'
import type { PendingBatch } from '@sluice/core/internal'
import { MICROS_PER_UNIT, NEVER } from '@sluice/core/internal'
import type { Ask, Batch, Item, LeasedUnits } from '@sluice/core/store'
import { algorithmOf, decideBesideLeases } from '@sluice/core/store'
import type { ByteWriter, CallContext, ScriptCall } from '../wire/call-encoding.ts'
import { CallArguments, encodingOf } from '../wire/call-encoding.ts'
import type { BatchGroup, BulkCheck, BulkLimits, DecideCall } from './call-builder.ts'

/** Flags of a batch; see lua/decide.lua. */
const CHARGE = 1
const PARTIAL = 2
const ENTITLED = 4
const HOLD = 8
const LEASE = 16

/** Encodes a call of the decide script. */
export function encodeDecideCall(call: DecideCall, context: CallContext): ScriptCall {
  const [check] = call.bulkChecks
  if (check !== undefined && isSingle(call, check)) return encodeSingleCheck(check, context)
  const { writer, body } = context
  const args = new CallArguments(context.time)
  if (call.groups.length === 0) {
    writeBulkChecks(call.bulkChecks, args, context)
    return { keys: args.keys, args: [args.header(writer, body)] }
  }
  const { batches, limits } = writeBatches(call.groups, args, context)
  writeBulkChecks(call.bulkChecks, args, context)
  return { keys: args.keys, args: [args.header(writer, body), batches(), ...limits] }
}

/**
 * Whether a call has nothing but one check of one key by one limit: the usual call of a process with little traffic.
 */
function isSingle({ bulkChecks, groups }: DecideCall, check: BulkCheck): boolean {
  return bulkChecks.length === 1 && groups.length === 0 && check.groups.length === 1 && check.limits.limits.length === 1
}

/**
 * Writes what {@link encodeDecideCall} writes for such a call, without tables for keys and limits. For a bucket there
 * is a shorter form: see lua/includes/single-bucket-check.lua.
 */
function encodeSingleCheck({ limits, cost, groups }: BulkCheck, { writer, time, recordOf }: CallContext): ScriptCall {
  const { first, size } = groups[0]!
  const keys = [recordOf(first.items[0]!.key)]
  const encoding = encodingOf(limits.limits[0]!)
  writer.clear()
  if (encoding.singleBucket !== undefined) {
    writer.double(time.givenMicros)
    writer.double(time.slackMs)
    writer.double(cost)
    writer.uint16(size)
    writer.bytes(encoding.singleBucket)
    return { keys, args: [writer.take()] }
  }
  writer.double(time.givenMicros)
  writer.double(time.slackMs)
  writer.uint16(1)
  writer.uint16(1)
  writer.bytes(encoding.bytes(time.aboutMicros))
  writer.uint16(1)
  writer.double(cost)
  writer.uint16(1)
  writer.uint16(1)
  writer.uint16(1)
  writer.uint16(size)
  return { keys, args: [writer.take()] }
}

function writeBulkChecks(checks: readonly BulkCheck[], args: CallArguments, { body, recordOf }: CallContext): void {
  // A bulk check has each key once, so with a single one no key can be there already.
  const hasOnlyNewKeys = checks.length === 1 && args.isEmpty
  body.clear()
  for (const { limits, cost, groups } of checks) {
    body.uint16(limits.limits.length)
    body.double(cost)
    body.uint16(groups.length)
    for (const limit of limits.limits) body.uint16(args.limitIndex(limit))
    for (const { first, size } of groups) {
      const record = recordOf(first.items[0]!.key)
      body.uint16(hasOnlyNewKeys ? args.addKey(record) : args.keyIndex(record))
      body.uint16(size)
    }
  }
}

function writeBatches(
  groups: readonly BatchGroup[],
  args: CallArguments,
  { writer, time, recordOf }: CallContext,
): { readonly batches: () => Buffer; readonly limits: readonly Buffer[] } {
  const limits: Buffer[] = []
  const patches: { readonly at: number; readonly offset: number }[] = []
  writer.clear()
  for (const { first, size } of groups) {
    writeBatch(writer, first, size)
    for (const item of first.items) {
      const encoding = encodingOf(item.limit)
      const record = recordOf(item.key)
      writer.uint16(args.limitIndex(item.limit))
      writer.uint16(args.keyIndex(record))
      writer.uint16(args.longStateIndex(record, encoding.longTag))
      if (first.holdMicros > 0) {
        patches.push({ at: writer.length, offset: args.holdOffset(record) })
        limits.push(encoding.bytes(time.aboutMicros))
      }
      writer.uint16(0)
      writer.double(item.cost)
    }
  }
  const bytes = writer.take()
  // Hold keys come after all records, whose number is known only when everything is written.
  const batches = (): Buffer => {
    for (const { at, offset } of patches) bytes.writeUInt16LE(args.holdIndex(offset), at)
    return bytes
  }
  return { batches, limits }
}

function writeBatch(writer: ByteWriter, batch: Batch, times: number): void {
  const span = batch.holdMicros || batch.leaseMicros
  let flags = 0
  if (batch.charge) flags += CHARGE
  if (batch.partial) flags += PARTIAL
  if (batch.entitled) flags += ENTITLED
  if (batch.holdMicros > 0) flags += HOLD
  else if (batch.leaseMicros > 0) flags += LEASE
  writer.uint8(flags)
  writer.uint16(times)
  writer.uint16(batch.items.length)
  writer.double(batch.holder)
  writer.double(span)
}

/**
 * Why the script could not decide yet: reservations have expired, or `now` is outside the calendar periods sent along.
 */
export type RetryReason = 'holds' | 'calendar'

const NOT_DECIDED = 65_535

/** The version of a record whose buckets share one timestamp. */
const SHARED_TIMESTAMP = 2

/** The form of the reply to a key of a bulk check. Any other: there was no record. */
const RECORD = 1
const GENERAL = 3
const CHARGED = 4

/** Flags of the reply to an item: what follows. */
const HAS_STATE = 1
const HAS_BLOCK = 2
const HAS_LEASES = 4
const WOULD_ALLOW = 8

const NO_LEASES: LeasedUnits = { units: 0, soonestEnd: 0 }

/** The state of one item before the decision, as the script found it. */
class ItemState {
  state: number[]
  leased: LeasedUnits = NO_LEASES
  blockedUntil = 0
  /** Whether the script has replied with the decision instead of the state. */
  isDecided = false

  constructor(state: number[]) {
    this.state = state
  }
}

/**
 * Decodes the reply of the decide script: how many batches of each group it admitted, and the states it found. The
 * decision of each batch follows from these by the functions that decide in memory, which must agree with the script.
 */
export class DecideReply {
  readonly #bytes: Buffer
  readonly now: number
  #at = 8
  #scratchLimits: BulkLimits | undefined = undefined
  #scratchStates: ItemState[] = []

  constructor(bytes: Buffer) {
    this.#bytes = bytes
    this.now = bytes.readDoubleLE(0)
  }

  /** Decodes the next group of a bulk check. Returns the reason when it was not decided. */
  decodeBulk(group: BatchGroup, limits: BulkLimits): RetryReason | undefined {
    const admitted = this.#uint16()
    const form = this.#uint8()
    if (form === GENERAL) return this.decode(group)
    const states = this.#scratch(limits)
    if (form === RECORD) this.#readRecord(limits, states)
    else if (form === CHARGED) this.#readCharged(states, admitted * group.first.items[0]!.cost)
    else for (const item of states) item.state = []
    this.#decide(group.head, admitted, states)
    return undefined
  }

  /** States are needed only until the decisions are written, so the keys of a bulk check share the objects. */
  #scratch(limits: BulkLimits): ItemState[] {
    if (limits !== this.#scratchLimits) {
      this.#scratchLimits = limits
      this.#scratchStates = limits.sizes.map(() => new ItemState([]))
    }
    return this.#scratchStates
  }

  /** Reads a record that holds exactly these limits. See lua/includes/key-records.lua. */
  #readRecord(limits: BulkLimits, states: readonly ItemState[]): void {
    const isShared = this.#bytes[this.#at] === SHARED_TIMESTAMP
    this.#at += limits.headerBytes
    const at = isShared ? this.#bytes.readDoubleLE(this.#at + 8) : 0
    if (isShared) this.#at += 16
    for (let index = 0; index < states.length; index++) {
      const { state } = states[index]!
      if (isShared) {
        state[0] = this.#double()
        state[1] = at
      } else {
        this.#at += 8
        this.#readValues(state, limits.sizes[index]!)
      }
    }
  }

  /** Reads bucket levels after the charge, and subtracts it. */
  #readCharged(states: readonly ItemState[], units: number): void {
    const at = this.#bytes.readDoubleLE(this.#at + 8)
    this.#at += 16
    for (let index = 0; index < states.length; index++) {
      const { state } = states[index]!
      state[0] = this.#double() - units * MICROS_PER_UNIT
      state[1] = at
    }
  }

  #readValues(state: number[], size: number): void {
    for (let index = 0; index < size; index++) state[index] = this.#double()
  }

  /** Decodes the next general group, and writes the decisions. Returns the reason when it was not decided. */
  decode(group: BatchGroup): RetryReason | undefined {
    const admitted = this.#uint16()
    if (admitted === NOT_DECIDED) return this.#uint8() === 1 ? 'holds' : 'calendar'
    const { first } = group
    if (first.partial) lowerCosts(first, this.#double())
    this.#decide(
      group.head,
      admitted,
      first.items.map((item) => this.#item(item)),
    )
    return undefined
  }

  /** Writes the decisions of the batches of a group, in order. */
  #decide(head: PendingBatch, admitted: number, states: readonly ItemState[]): void {
    let number = 0
    for (let pending: PendingBatch | undefined = head; pending !== undefined; pending = pending.next) {
      const { batch } = pending
      batch.now = this.now
      // Batches that charge nothing do not affect each other: all of them are admitted, or none.
      batch.allowed = batch.charge ? number++ < admitted : admitted > 0
      decideItems(batch, states)
      if (batch.allowed && batch.charge && pending.next !== undefined) applyCharges(batch, states)
    }
  }

  #item(item: Item): ItemState {
    const encoding = encodingOf(item.limit)
    const flags = this.#uint8()
    const found = new ItemState([])
    if (flags & HAS_BLOCK) found.blockedUntil = this.#double()
    if (flags & HAS_LEASES) found.leased = { units: this.#double(), soonestEnd: this.#double() }
    if (encoding.isDecidedByScript) {
      found.isDecided = true
      this.#readDecision(item, (flags & WOULD_ALLOW) > 0)
    } else if (flags & HAS_STATE) {
      this.#readValues(found.state, encoding.recordSize)
      const count = encoding.hasList ? this.#uint16() : 0
      for (let index = 0; index < count; index++) found.state.push(this.#double())
    }
    return found
  }

  /** Reads the decision of a limit whose state stays on the server. */
  #readDecision({ verdict }: Item, wouldAllow: boolean): void {
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

/** Reused for every item. */
const ask: Ask = { now: 0.5, cost: 0, holder: 0, entitled: true }

function decideItems(batch: Batch, states: readonly ItemState[]): void {
  ask.now = batch.now
  ask.holder = batch.holder
  ask.entitled = batch.entitled
  let allowed = true
  for (let index = 0; index < states.length; index++) {
    const item = batch.items[index]!
    const { state, leased, blockedUntil, isDecided } = states[index]!
    item.blockedUntil = blockedUntil
    ask.cost = item.cost
    if (!isDecided) {
      if (leased.units === 0) algorithmOf(item.limit).decide(state, item.limit, ask, item.verdict)
      else decideBesideLeases(state, item.limit, { ask, leased }, item.verdict)
    }
    if (item.verdict.ruling !== 'allowed' || blockedUntil > 0) allowed = false
  }
  if (allowed !== batch.allowed) throw disagreement(batch)
}

/** Changes the states to what an allowed batch has left: the next one of its group starts from there. */
function applyCharges(batch: Batch, states: readonly ItemState[]): void {
  for (let index = 0; index < states.length; index++) {
    const { verdict, cost } = batch.items[index]!
    if (cost === 0) continue
    const { state } = states[index]!
    for (let place = 0; place < verdict.nextLength; place++) state[place] = verdict.next[place]!
  }
}

/** The script and this process disagree, which must not go unnoticed. */
function disagreement(batch: Batch): SluiceError {
  return new SluiceError('SLUICE_PROTOCOL', {
    problem: 'Redis and this process decided differently',
    received:
      `${batch.allowed ? 'allowed' : 'denied'} by Redis, under ` +
      `${batch.items.map((item) => item.limit.id).join(', ')}`,
    expected: 'the same decision from the same state',
    action: 'Run the same version of Sluice on all nodes that share a key prefix. If they do, please report it.',
  })
}
