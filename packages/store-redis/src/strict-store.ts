import type { Clock, Settlement, Timers } from '@sluice/core'
import { SluiceError } from '@sluice/core'
import type {
  AnswerListener,
  AskedQuestion,
  Batch,
  BlockTerm,
  Limit,
  ListenedStore,
  Receipt,
} from '@sluice/core/internal'
import { blockTermOf, decideByListening, outcomeUnknown } from '@sluice/core/internal'
import { Question, type QuestionGroup } from './calls/batch-group.ts'
import type { Plan } from './calls/bulk-limits.ts'
import type { CallPlan } from './calls/call-builder.ts'
import { CallLine } from './calls/call-scheduler.ts'
import type { NotYet } from './calls/decide-reply.ts'
import { DecideReply } from './calls/decide-reply.ts'
import { decideCall } from './calls/decide-request.ts'
import { giveBackCall, readSettlement, settleCall } from './calls/settle-request.ts'
import { nodeAnchors } from './connection/cluster-slots.ts'
import type { RedisArgument, RedisConnection } from './connection/connection.ts'
import { ByteWriter } from './wire/byte-writer.ts'
import type { CallParts, CallTime } from './wire/call-arguments.ts'
import { codeOf, entryTag } from './wire/limit-encoding.ts'
import { holdNotesName, holdSetName, isRecordName, longName, SubjectNames } from './wire/redis-keys.ts'
import type { Script, ScriptRunner } from './wire/script-runner.ts'
import { scriptOf } from './wire/script-runner.ts'
import { CHANGE_SCRIPT, DECIDE_SCRIPT, SCAN_SCRIPT, SETTLE_SCRIPT } from './wire/scripts.ts'

/** The script of all decisions. */
export const DECIDE: Script = scriptOf('decide-n.lua', DECIDE_SCRIPT)
const SETTLE = scriptOf('settle-n.lua', SETTLE_SCRIPT)
const CHANGE = scriptOf('change-n.lua', CHANGE_SCRIPT)
const SCAN = scriptOf('scan-1.lua', SCAN_SCRIPT)

/** How often a call is repeated because reservations had to be given back, or the calendar did not reach, before it fails. */
const MOST_ATTEMPTS = 10

/** Reservations given back in one call. */
const MOST_GIVEN_BACK = 50

/** Milliseconds that keys outlive their time by when it is not the server's. */
const FOREIGN_TIME_SLACK_MS = 3_600_000

/** What a strict store is made of. */
export interface StrictStoreParts {
  readonly connection: RedisConnection
  readonly runner: ScriptRunner
  readonly prefix: string
  /** About what time it is, for the calendar. */
  readonly clock: Clock
  /** Whether decisions are made at the time of `clock` instead of the server's: for tests. */
  readonly usesClock: boolean
  /** Milliseconds that only go on. */
  readonly monotonicMs: () => number
  /** Runs something after everything that is ready now, in this turn of the event loop. */
  readonly atTurnEnd: (run: () => void) => void
  readonly timers: Timers
  /** Is told whenever questions go out. */
  readonly onSend?: () => void
}

/**
 * Decides in Redis: exact across machines. All questions of one turn of the event loop travel together, and those that ask
 * the same are asked once for all. Errors are raised as they are; deadlines and failure modes are the fallback store's.
 */
export class StrictStore implements ListenedStore {
  readonly mode = 'async'
  readonly #parts: StrictStoreParts
  readonly #runner: ScriptRunner
  readonly #names: SubjectNames
  readonly #nameOf: (key: string) => string
  readonly #writer = new ByteWriter()
  readonly #body = new ByteWriter()
  readonly #line: CallLine
  /** How far the server's clock is ahead of ours, as far as it has mattered. */
  #serverAheadMicros = 0
  #closed = false

  constructor(parts: StrictStoreParts) {
    this.#parts = parts
    this.#runner = parts.runner
    this.#names = new SubjectNames(parts.prefix)
    this.#nameOf = (key) => this.#names.record(key)
    this.#line = new CallLine({
      isCluster: parts.connection.isCluster,
      writesLater: parts.connection.writesLater === true,
      monotonicMs: parts.monotonicMs,
      atTurnEnd: parts.atTurnEnd,
      timers: parts.timers,
      call: (plan) => this.#call(plan),
      answered: (plan, reply) => {
        for (const run of plan.runs) for (const group of run.groups) this.#tell(group, reply, run.plan)
        for (const group of plan.groups) this.#tell(group, reply, undefined)
      },
      failed: (plan, error) => {
        for (const { groups } of [...plan.runs, plan]) for (const group of groups) group.reject(error)
      },
    })
  }

  decide(batch: Batch): Promise<void> {
    return decideByListening(this, batch)
  }

  ask(batch: Batch, listener: AnswerListener): AskedQuestion {
    const question = new Question(batch, listener)
    if (this.#closed) listener.unanswered(closedError())
    else this.#line.add(question)
    return question
  }

  async settle(receipt: Receipt, actuals: readonly number[]): Promise<Settlement> {
    return await this.#settle(receipt, { actuals, strikeOnly: false })
  }

  /** Makes a held charge stand. False when it had been given back already: then nothing is charged. */
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
   * Forgets the counters of every key under these limits, one key after another: what is charged meanwhile may stay. Looks
   * at all names with the prefix, so it takes as long as there are keys. Needs the commands SCAN and, in a cluster, CLUSTER.
   */
  async resetAll(limits: readonly Limit[]): Promise<void> {
    if (this.#closed) throw closedError()
    const counters = countersOf(limits)
    for (const anchor of await nodeAnchors(this.#runner, this.#parts)) {
      let cursor: RedisArgument = '0'
      do {
        const [next, names] = (await this.#runner.run(SCAN, [anchor], [cursor, this.#names.pattern])) as [
          Buffer,
          Buffer[],
        ]
        const records = names.map(String).filter(isRecordName)
        await Promise.all(records.map((record) => this.#changeRecord(record, { micros: -1, ...counters })))
        cursor = next
      } while (String(cursor) !== '0')
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#line.close(closedError())
    await this.#parts.connection.close()
  }

  async #call(plan: CallPlan): Promise<DecideReply> {
    this.#parts.onSend?.()
    const call = decideCall(plan, this.#callParts())
    return new DecideReply(await this.#runner.runForBytes(DECIDE, call.keys, call.args))
  }

  /** Reads the answer to a group, in the order of the call, and tells those who wait for it. */
  #tell(group: QuestionGroup, reply: DecideReply, plan: Plan | undefined): void {
    try {
      const why = plan === undefined ? reply.answer(group) : reply.answerRun(group, plan)
      if (why !== undefined) {
        void this.#askAgain(group, why, reply.now)
        return
      }
    } catch (error) {
      group.reject(error)
      return
    }
    group.resolve()
  }

  async #askAgain(group: QuestionGroup, why: NotYet, now: number): Promise<void> {
    try {
      group.attempts++
      const records = new Set(group.first.items.map((item) => this.#nameOf(item.key)))
      await this.#clearTheWay(why, { records, now, attempts: group.attempts })
      if (this.#closed) throw closedError()
      this.#line.addAgain(group)
    } catch (error) {
      group.reject(error)
    }
  }

  /** Does what kept a call from being done. */
  async #clearTheWay(
    why: NotYet,
    { records, now, attempts }: { readonly records: Iterable<string>; readonly now: number; readonly attempts: number },
  ): Promise<void> {
    if (attempts > MOST_ATTEMPTS) {
      throw outcomeUnknown({ because: 'refused', problem: `Redis asked for the same call ${attempts} times` })
    }
    if (why === 'calendar') this.#serverAheadMicros = now - this.#parts.clock.nowMicros()
    else for (const record of records) await this.#giveBackRunOut(record, now)
  }

  /** Gives back the reservations of a subject that have run out, each as of its end. */
  async #giveBackRunOut(record: string, now: number): Promise<void> {
    const [set, notes] = [holdSetName(record), holdNotesName(record)]
    const range = ['ZRANGEBYSCORE', set, '-inf', now.toFixed(0), 'LIMIT', '0', String(MOST_GIVEN_BACK)]
    const holders = (await this.#runner.command(range, record)) as Buffer[]
    if (holders.length === 0) return
    const found = (await this.#runner.command(['HMGET', notes, ...holders], record)) as (Buffer | null)[]
    const holds = holders.map((holder, index) => ({ holder, note: found[index] ?? undefined }))
    const call = giveBackCall(record, holds, this.#callParts())
    await this.#runner.run(SETTLE, call.keys, call.args)
  }

  async #settle(
    receipt: Receipt,
    how: { readonly actuals: readonly number[]; readonly strikeOnly: boolean },
  ): Promise<Settlement> {
    if (this.#closed) throw closedError()
    for (let attempts = 1; ; attempts++) {
      const parts = this.#callParts()
      const call = settleCall(receipt, how, parts)
      const { outcome, corrected, now } = readSettlement(await this.#runner.runForBytes(SETTLE, call.keys, call.args))
      if (outcome !== 'holds' && outcome !== 'calendar') return { outcome, corrected }
      const records = new Set(receipt.charges.map((charge) => this.#nameOf(charge.key)))
      await this.#clearTheWay(outcome, { records, now, attempts })
    }
  }

  async #change(key: string, change: KeyChange): Promise<void> {
    if (this.#closed) throw closedError()
    await this.#changeRecord(this.#nameOf(key), change)
  }

  async #changeRecord(record: string, { micros, tags, longs }: KeyChange): Promise<void> {
    const keys = [record, ...longs.map((tag) => longName(record, tag))]
    for (let attempts = 1; ; attempts++) {
      const { givenMicros, slackMs } = this.#time()
      const head = Buffer.alloc(18)
      head.writeDoubleLE(givenMicros, 0)
      head.writeDoubleLE(slackMs, 8)
      head.writeUInt16LE(keys.length, 16)
      const span = Buffer.alloc(8)
      span.writeDoubleLE(micros)
      const reply = await this.#runner.runForBytes(CHANGE, keys, [head, span, Buffer.concat(tags)])
      if (reply[8] === 1) return
      await this.#clearTheWay('holds', { records: [record], now: reply.readDoubleLE(0), attempts })
    }
  }

  #callParts(): CallParts {
    return { writer: this.#writer, body: this.#body, time: this.#time(), nameOf: this.#nameOf }
  }

  #time(): CallTime {
    const nowMicros = this.#parts.clock.nowMicros()
    if (this.#parts.usesClock) {
      return { givenMicros: nowMicros, aboutMicros: nowMicros, slackMs: FOREIGN_TIME_SLACK_MS }
    }
    return { givenMicros: 0, aboutMicros: nowMicros + this.#serverAheadMicros, slackMs: 0 }
  }
}

/** What is changed about a key. See lua/change-n.lua. */
interface KeyChange {
  readonly micros: number
  readonly tags: readonly Buffer[]
  readonly longs: readonly string[]
}

/** Where the counters of limits are kept: the entries of a record, and the states under keys of their own. */
function countersOf(limits: readonly Limit[]): { readonly tags: readonly Buffer[]; readonly longs: readonly string[] } {
  return {
    tags: limits.flatMap(({ id }) => [entryTag('state', id), entryTag('lease', id)]),
    longs: limits.map((limit) => codeOf(limit).longTag).filter((tag) => tag !== undefined),
  }
}

function closedError(): SluiceError {
  return new SluiceError('SLUICE_CLOSED', { problem: 'the Redis store is closed', action: 'Create a new one.' })
}
