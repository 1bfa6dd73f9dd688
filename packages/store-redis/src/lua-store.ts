import type { Clock, Settlement, Timers } from '@sluice/core'
import { SluiceError } from '@sluice/core'
import type { PendingBatch } from '@sluice/core/internal'
import { CallbackStore } from '@sluice/core/internal'
import type { BlockTerm, Limit, Receipt } from '@sluice/core/store'
import { blockTermOf, outcomeUnknown } from '@sluice/core/store'
import type { BatchGroup, BulkLimits, DecideCall } from './calls/call-builder.ts'
import { groupsIn } from './calls/call-builder.ts'
import { CallScheduler } from './calls/call-scheduler.ts'
import type { RetryReason } from './calls/decide-call.ts'
import { DecideReply, encodeDecideCall } from './calls/decide-call.ts'
import { decodeSettlement, encodeExpiredHolds, encodeSettleCall } from './calls/settle-call.ts'
import { primaryRoutingKeys } from './connection/cluster-slots.ts'
import type { RedisArgument, RedisConnection } from './connection/connection.ts'
import type { CallContext, CallTime } from './wire/call-encoding.ts'
import {
  ByteWriter,
  encodingOf,
  entryTag,
  holdNotesKey,
  holdSetKey,
  isRecordKey,
  longStateKey,
  RedisKeys,
} from './wire/call-encoding.ts'
import type { ScriptRunner } from './wire/script-runner.ts'
import { bytesOf } from './wire/script-runner.ts'
import { BLOCK_OR_RESET, DECIDE, SCAN_KEYS, SETTLE } from './wire/scripts.ts'

/** Maximum attempts of a call that needs expired reservations to be refunded, or other calendar periods. */
const MAX_ATTEMPTS = 10

/** Maximum number of expired reservations refunded in one call. */
const MAX_REFUNDS_PER_CALL = 50

/** Milliseconds added to the expiry of keys when decisions do not use the server's time. */
const FOREIGN_TIME_SLACK_MS = 3_600_000

/** Options of a {@link LuaStore}. */
export interface LuaStoreOptions {
  readonly connection: RedisConnection
  readonly runner: ScriptRunner
  readonly prefix: string
  /** The approximate time, for the calendar. */
  readonly clock: Clock
  /** Whether decisions use the time of `clock` instead of the server's: for tests. */
  readonly usesClock: boolean
  readonly monotonicMs: () => number
  /** Runs a callback in this iteration of the event loop, after the callbacks of all input. */
  readonly runAfterIo: (run: () => void) => void
  readonly timers: Timers
  /** Called whenever a call is sent. */
  readonly onSend?: () => void
}

/**
 * Decides in Redis: exact across machines. A batch on an idle connection leaves at once. Under load, all batches of an
 * event loop iteration leave together, and equal batches are sent once. Errors are raised unchanged: deadlines and
 * failure modes belong to the fallback store.
 */
export class LuaStore extends CallbackStore {
  readonly #options: LuaStoreOptions
  readonly #runner: ScriptRunner
  readonly #keys: RedisKeys
  readonly #recordOf: (key: string) => string
  readonly #writer = new ByteWriter()
  readonly #body = new ByteWriter()
  readonly #scheduler: CallScheduler
  /** How far the server's clock is ahead of ours. Updated only when it matters. */
  #serverAheadMicros = 0
  #closed = false

  constructor(options: LuaStoreOptions) {
    super()
    this.#options = options
    this.#runner = options.runner
    this.#keys = new RedisKeys(options.prefix)
    this.#recordOf = (key) => this.#keys.record(key)
    this.#scheduler = new CallScheduler({
      isCluster: options.connection.isCluster,
      writesLater: options.connection.writesLater === true,
      monotonicMs: options.monotonicMs,
      runAfterIo: options.runAfterIo,
      timers: options.timers,
      call: (call) => this.#call(call),
      answered: (call, reply) => {
        for (const { limits, groups } of call.bulkChecks) for (const group of groups) this.#answer(group, reply, limits)
        for (const group of call.groups) this.#answer(group, reply, undefined)
      },
      failed: (call, error) => {
        for (const group of groupsIn(call)) group.fail(error)
      },
    })
  }

  submit(pending: PendingBatch): void {
    if (this.#closed) pending.fail(closedError())
    else this.#scheduler.add(pending)
  }

  async settle(receipt: Receipt, actuals: readonly number[]): Promise<Settlement> {
    return await this.#settle(receipt, { actuals, strikeOnly: false })
  }

  /** Makes a held charge final. Returns false when it was refunded already: then nothing is charged. */
  async confirm(receipt: Receipt): Promise<boolean> {
    const actuals = receipt.charges.map(({ cost }) => cost)
    return (await this.#settle(receipt, { actuals, strikeOnly: true })).outcome === 'settled'
  }

  async block(rule: string, key: string, term: BlockTerm): Promise<void> {
    const { micros, forgotten } = blockTermOf(term)
    const { tags, longs } = countersOf(forgotten)
    await this.#change(key, { micros, tags: [entryTag('block', rule), ...tags], longs })
  }

  async reset(limits: readonly Limit[], key: string): Promise<void> {
    const { tags, longs } = countersOf(limits)
    const blocks = limits.map(({ rule }) => entryTag('block', rule))
    await this.#change(key, { micros: -1, tags: [...tags, ...blocks], longs })
  }

  /**
   * Deletes the counters of every key under these limits, one key after another. What is charged meanwhile may stay.
   * Scans all keys with the prefix. Needs the commands SCAN and, in a cluster, CLUSTER.
   */
  async resetAll(limits: readonly Limit[]): Promise<void> {
    if (this.#closed) throw closedError()
    const counters = countersOf(limits)
    const { connection, prefix } = this.#options
    const send: RedisConnection['send'] = (command, key) => this.#runner.command(command, key)
    for (const routingKey of await primaryRoutingKeys(send, { isCluster: connection.isCluster, prefix })) {
      let cursor: RedisArgument = '0'
      do {
        const [next, names] = (await this.#runner.run(SCAN_KEYS, [routingKey], [cursor, this.#keys.pattern])) as [
          Buffer,
          Buffer[],
        ]
        const records = names.map(String).filter(isRecordKey)
        await Promise.all(records.map((record) => this.#blockOrReset(record, { micros: -1, ...counters })))
        cursor = next
      } while (String(cursor) !== '0')
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#scheduler.close(closedError())
    await this.#options.connection.close()
  }

  async #call(contents: DecideCall): Promise<DecideReply> {
    this.#options.onSend?.()
    const { keys, args } = encodeDecideCall(contents, this.#callContext())
    return new DecideReply(bytesOf(DECIDE, await this.#runner.run(DECIDE, keys, args)))
  }

  /** Decodes the decision of a group, in the order of the call, and completes its batches. */
  #answer(group: BatchGroup, reply: DecideReply, limits: BulkLimits | undefined): void {
    try {
      const reason = limits === undefined ? reply.decode(group) : reply.decodeBulk(group, limits)
      if (reason !== undefined) {
        void this.#retry(group, reason, reply.now)
        return
      }
    } catch (error) {
      group.fail(error)
      return
    }
    group.complete()
  }

  async #retry(group: BatchGroup, reason: RetryReason, now: number): Promise<void> {
    try {
      group.attempts++
      const records = new Set(group.first.items.map((item) => this.#recordOf(item.key)))
      await this.#prepareRetry(reason, { records, now, attempts: group.attempts })
      if (this.#closed) throw closedError()
      this.#scheduler.addAgain(group)
    } catch (error) {
      group.fail(error)
    }
  }

  /** Removes the reason why a call could not be decided. */
  async #prepareRetry(
    reason: RetryReason,
    { records, now, attempts }: { readonly records: Iterable<string>; readonly now: number; readonly attempts: number },
  ): Promise<void> {
    if (attempts > MAX_ATTEMPTS) {
      throw outcomeUnknown({ because: 'refused', problem: `Redis could not decide the same call ${attempts} times` })
    }
    if (reason === 'calendar') this.#serverAheadMicros = now - this.#options.clock.nowMicros()
    else for (const record of records) await this.#refundExpiredHolds(record, now)
  }

  /** Refunds the expired reservations of a record, each as of its expiry. */
  async #refundExpiredHolds(record: string, now: number): Promise<void> {
    const [set, notes] = [holdSetKey(record), holdNotesKey(record)]
    const range = ['ZRANGEBYSCORE', set, '-inf', now.toFixed(0), 'LIMIT', '0', String(MAX_REFUNDS_PER_CALL)]
    const holders = (await this.#runner.command(range, record)) as Buffer[]
    if (holders.length === 0) return
    const found = (await this.#runner.command(['HMGET', notes, ...holders], record)) as (Buffer | null)[]
    const holds = holders.map((holder, index) => ({ holder, note: found[index] ?? undefined }))
    const call = encodeExpiredHolds(record, holds, this.#callContext())
    await this.#runner.run(SETTLE, call.keys, call.args)
  }

  async #settle(
    receipt: Receipt,
    how: { readonly actuals: readonly number[]; readonly strikeOnly: boolean },
  ): Promise<Settlement> {
    if (this.#closed) throw closedError()
    for (let attempts = 1; ; attempts++) {
      const call = encodeSettleCall(receipt, how, this.#callContext())
      const { outcome, corrected, now } = decodeSettlement(
        bytesOf(SETTLE, await this.#runner.run(SETTLE, call.keys, call.args)),
      )
      if (outcome !== 'holds' && outcome !== 'calendar') return { outcome, corrected }
      const records = new Set(receipt.charges.map((charge) => this.#recordOf(charge.key)))
      await this.#prepareRetry(outcome, { records, now, attempts })
    }
  }

  async #change(key: string, change: KeyChange): Promise<void> {
    if (this.#closed) throw closedError()
    await this.#blockOrReset(this.#recordOf(key), change)
  }

  async #blockOrReset(record: string, { micros, tags, longs }: KeyChange): Promise<void> {
    const keys = [record, ...longs.map((tag) => longStateKey(record, tag))]
    for (let attempts = 1; ; attempts++) {
      const { givenMicros, slackMs } = this.#time()
      const head = Buffer.alloc(18)
      head.writeDoubleLE(givenMicros, 0)
      head.writeDoubleLE(slackMs, 8)
      head.writeUInt16LE(keys.length, 16)
      const span = Buffer.alloc(8)
      span.writeDoubleLE(micros)
      const args = [head, span, Buffer.concat(tags)]
      const reply = bytesOf(BLOCK_OR_RESET, await this.#runner.run(BLOCK_OR_RESET, keys, args))
      if (reply[8] === 1) return
      await this.#prepareRetry('holds', { records: [record], now: reply.readDoubleLE(0), attempts })
    }
  }

  #callContext(): CallContext {
    return { writer: this.#writer, body: this.#body, time: this.#time(), recordOf: this.#recordOf }
  }

  #time(): CallTime {
    const nowMicros = this.#options.clock.nowMicros()
    if (this.#options.usesClock) {
      return { givenMicros: nowMicros, aboutMicros: nowMicros, slackMs: FOREIGN_TIME_SLACK_MS }
    }
    return { givenMicros: 0, aboutMicros: nowMicros + this.#serverAheadMicros, slackMs: 0 }
  }
}

/** The arguments of lua/block-or-reset.lua. */
interface KeyChange {
  readonly micros: number
  readonly tags: readonly Buffer[]
  readonly longs: readonly string[]
}

/** Where the counters of limits are stored: the entries of a record, and the states under separate keys. */
function countersOf(limits: readonly Limit[]): { readonly tags: readonly Buffer[]; readonly longs: readonly string[] } {
  return {
    tags: limits.flatMap(({ id }) => [entryTag('state', id), entryTag('lease', id)]),
    longs: limits.map((limit) => encodingOf(limit).longTag).filter((tag) => tag !== undefined),
  }
}

function closedError(): SluiceError {
  return new SluiceError('SLUICE_CLOSED', { problem: 'the Redis store is closed', action: 'Create a new one.' })
}
