import { isSluiceError, SluiceError } from '../../errors.ts'
import { checkOptionNames, checkSources, checkWhole, type OptionTaker } from '../../options/known-options.ts'
import type { Limit } from '../../rule/limit.ts'
import type { FailureMode } from '../../rule/rule.ts'
import type { Clock } from '../../system/clock.ts'
import { systemClock, systemMonotonicMs } from '../../system/clock.ts'
import type { Random } from '../../system/random.ts'
import { systemRandom } from '../../system/random.ts'
import type { Timers } from '../../system/timers.ts'
import { systemTimers } from '../../system/timers.ts'
import { copyQuestion } from '../batch-copy.ts'
import {
  type AnswerListener,
  type AskedQuestion,
  asListened,
  decideByListening,
  type ListenedStore,
} from '../callback-store.ts'
import { receiptOf } from '../receipt.ts'
import type { Batch, BlockTerm, Receipt, Settlement, Store } from '../store.ts'
import { outcomeUnknown, type StoreFailure, storeUnavailable } from '../store-error.ts'
import { type BreakerState, type StoreObserver, tell } from '../store-event.ts'
import { Breaker, type BreakerOptions } from './breaker.ts'
import type { WaitingCall } from './deadline-queue.ts'
import { FallbackAnswers } from './fallback-answers.ts'
import { type GuardedCall, GuardedCalls } from './guarded-calls.ts'

/** Options of {@link fallbackStore}. */
export interface FallbackStoreOptions {
  /** How long a call waits for the store, 1 to 60,000. Default: 50. */
  readonly deadlineMs?: number
  /** What to answer without the store, for rules that do not say. Default: `open`. */
  readonly failureMode?: FailureMode
  /** Live nodes, this one included, for `local`. Default: 1, also for an answer below 1. */
  readonly nodes?: () => number
  /** Maximum number of keys remembered, and counted, for `local`: 64 to 100,000,000. Default: 100,000. */
  readonly maxLocalKeys?: number
  readonly breaker?: BreakerOptions
  /** Most calls in flight, 1 to 1,000,000. Default: 10,000. Beyond it a call is answered without the store at once. */
  readonly maxPending?: number
  readonly observe?: StoreObserver
  readonly timers?: Timers
  /** The time of answers given without the store. */
  readonly clock?: Clock
  /** Milliseconds that only go on, for deadlines and pauses. Default: `performance.now()`. */
  readonly monotonicMs?: () => number
  readonly random?: Random
}

const TAKER: OptionTaker = {
  name: 'the fallback store',
  options: [
    'deadlineMs',
    'failureMode',
    'nodes',
    'maxLocalKeys',
    'breaker',
    'maxPending',
    'observe',
    'timers',
    'clock',
    'monotonicMs',
    'random',
  ],
  example: "{ deadlineMs: 50, failureMode: 'open' }",
}
const BREAKER_TAKER: OptionTaker = {
  name: '"breaker"',
  options: ['failures', 'basePauseMs', 'maxPauseMs'],
  example: '{ failures: 5 }',
}

/** What a fallback store has done so far. */
export interface FallbackStoreStats {
  /** Calls made to the store, and those of them that got no usable answer in time. */
  readonly asked: number
  readonly failed: number
  /** Calls in flight now. */
  readonly pending: number
  /** Checks answered without the store, by mode. */
  readonly fellBack: Readonly<Record<FailureMode, number>>
  /** Answers that came too late, and charges of them that were given back. */
  readonly lateAnswers: number
  readonly givenBack: number
}

/**
 * A store that answers every check within a deadline, also while `store` is slow, denies, or is gone, and says so in the
 * decision's `failure`. It asks again by itself; nothing is ever sent twice. Settlements, blocks and resets have no other
 * way to succeed: they fail with `SLUICE_STORE_UNAVAILABLE` (nothing happened) or `SLUICE_OUTCOME_UNKNOWN` (it may have);
 * blocks and resets then count on this node all the same. A charge is settled where it was made. Leases are never made up:
 * without the store, asking for one is an error.
 *
 * Closing it closes `store`, and answers the calls in flight with `SLUICE_CLOSED`.
 */
export function fallbackStore(store: Store<'async'>, options: FallbackStoreOptions = {}): FallbackStore {
  checkOptionNames(options, TAKER)
  checkSources(options)
  return new FallbackStore(store, options)
}

/** How a store of this workspace is started, and what it sees to by itself. */
export interface FallbackStart {
  /** How long failures before the first answer do not count against the breaker. */
  readonly graceMs: number
  /** Calls wait for it, from the first one on. It never rejects. Default: they do not wait. */
  readonly untilStarted?: (() => Promise<void>) | undefined
  /** Whether the store has a breaker for each of its parts, so that none is needed here. */
  readonly hasBreakers: boolean
}

/** A {@link fallbackStore} for a store that has to start. */
export function startingFallbackStore(
  store: Store<'async'>,
  options: FallbackStoreOptions,
  start: FallbackStart,
): FallbackStore {
  return new FallbackStore(store, options, start)
}

/** A store that always answers in time. */
export class FallbackStore implements ListenedStore {
  readonly mode = 'async'
  readonly #store: ListenedStore
  readonly #breaker: Breaker
  readonly #calls: GuardedCalls
  readonly #answers: FallbackAnswers
  readonly #observe: StoreObserver | undefined
  readonly #deadlineMs: number
  readonly #monotonicMs: () => number
  readonly #fellBack: Record<FailureMode, number> = { open: 0, closed: 0, local: 0 }
  #lateAnswers = 0
  #givenBack = 0
  #closing: Promise<void> | undefined

  constructor(store: Store<'async'>, options: FallbackStoreOptions, start?: FallbackStart) {
    const { observe, clock = systemClock, random = systemRandom, timers = systemTimers } = options
    const { monotonicMs = systemMonotonicMs, nodes = () => 1 } = options
    if (options.breaker !== undefined) checkOptionNames(options.breaker, BREAKER_TAKER)
    const deadlineMs = checkWhole('deadlineMs', options.deadlineMs ?? 50, { of: TAKER.name, most: 60_000 })
    const onChange = (state: BreakerState): void => tell(observe, { type: 'breaker', state })
    this.#store = asListened(store)
    this.#observe = observe
    this.#deadlineMs = deadlineMs
    this.#monotonicMs = monotonicMs
    this.#breaker = new Breaker({
      ...options.breaker,
      random,
      onChange,
      neverOpens: start?.hasBreakers ?? false,
      start: start && { atMs: monotonicMs(), graceMs: start.graceMs },
    })
    this.#calls = new GuardedCalls({
      deadlineMs,
      maxPending: checkWhole('maxPending', options.maxPending ?? 10_000, { of: TAKER.name, most: 1_000_000 }),
      breaker: this.#breaker,
      timers,
      monotonicMs,
      observe,
      untilStarted: start?.untilStarted,
    })
    this.#answers = new FallbackAnswers({
      failureMode: checkMode(options.failureMode ?? 'open'),
      nodes,
      maxLocalKeys: checkWhole('maxLocalKeys', options.maxLocalKeys ?? 100_000, {
        of: TAKER.name,
        least: 64,
        most: 100_000_000,
      }),
      clock,
      random,
    })
  }

  get state(): BreakerState {
    return this.#breaker.state
  }

  stats(): FallbackStoreStats {
    return {
      ...this.#calls.stats(),
      fellBack: { ...this.#fellBack },
      lateAnswers: this.#lateAnswers,
      givenBack: this.#givenBack,
    }
  }

  decide(batch: Batch): Promise<void> {
    return decideByListening(this, batch)
  }

  ask(batch: Batch, listener: AnswerListener): AskedQuestion {
    const call = new DecideCall(this, batch, listener)
    if (this.#closing === undefined) this.#calls.send(call)
    else listener.unanswered(closedError())
    return call
  }

  /** Asks the store beneath. */
  askBeneath(batch: Batch, listener: AnswerListener): AskedQuestion {
    return this.#store.ask(batch, listener)
  }

  settle(receipt: Receipt, actuals: readonly number[]): Promise<Settlement> {
    if (this.#closing !== undefined) return Promise.reject(closedError())
    return new Promise((resolve, reject) => {
      const here = this.#answers.settle(receipt, actuals)
      if (here !== undefined) {
        resolve(here)
        return
      }
      const sent = this.#answers.settling(receipt, actuals)
      const settled = (settlement: Settlement): void => {
        this.#answers.settled(sent, settlement)
        resolve(settlement)
      }
      const start = (): Promise<Settlement> => this.#store.settle(receipt, actuals)
      this.#calls.send(new RelayedCall({ start, resolve: settled, reject }))
    })
  }

  block(rule: string, key: string, term: BlockTerm): Promise<void> {
    return this.#both(
      () => this.#store.block(rule, key, term),
      () => this.#answers.block(rule, key, term),
    )
  }

  reset(limits: readonly Limit[], key: string): Promise<void> {
    return this.#both(
      () => this.#store.reset(limits, key),
      () => this.#answers.reset(limits, key),
    )
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#calls.close(closedError())
    try {
      await this.#store.close()
    } finally {
      await this.#answers.close()
    }
  }

  /** Does something in the store and here, whatever becomes of the other. */
  #both(start: () => Promise<void>, doHere: () => void): Promise<void> {
    if (this.#closing !== undefined) return Promise.reject(closedError())
    return new Promise((resolve, reject) => {
      this.#calls.send(new RelayedCall({ start, resolve, reject }))
      doHere()
    })
  }

  /** Remembers what local decisions need of an answer of the store. */
  note(batch: Batch): void {
    this.#answers.note(batch)
  }

  /** Answers a batch without the store. Throws when that cannot be. */
  fallBack(batch: Batch, { cause, charged: mayHaveCharged }: StoreFailure, error: unknown): void {
    const charged = batch.charge ? mayHaveCharged : 'no'
    if (batch.leaseMicros > 0) throw storeErrorOf({ cause, charged }, error)
    const { mode, rule } = this.#answers.modeOf(batch)
    const pauseMs = this.#breaker.pauseLeftMs(this.#monotonicMs())
    this.#answers.decide(batch, mode, Math.max(1, pauseMs === 0 ? this.#deadlineMs : pauseMs))
    batch.failure = { mode, cause, charged, detail: this.#calls.complaint }
    this.#fellBack[mode]++
    tell(this.#observe, { type: 'fell-back', mode, rule })
  }

  /** The answer to a call came after its caller was told something else. */
  endLate(sheet: Batch, refused: boolean): void {
    this.#lateAnswers++
    const { allowed } = sheet
    if (allowed && sheet.charge && refused) void this.#giveBack(receiptOf(sheet))
    else tell(this.#observe, { type: 'late-answer', allowed, givenBack: false })
  }

  /** Once and without a deadline: nobody waits for it. A charge that cannot be given back stands. */
  async #giveBack(receipt: Receipt): Promise<void> {
    let givenBack = true
    try {
      await this.#store.settle(
        receipt,
        receipt.charges.map(() => 0),
      )
      this.#givenBack++
    } catch {
      givenBack = false
    }
    tell(this.#observe, { type: 'late-answer', allowed: true, givenBack })
  }
}

/** One decision on its way through a fallback store: hears of the store beneath, and tells whoever asked. */
class DecideCall implements GuardedCall<Batch>, AnswerListener, AskedQuestion {
  sentMs = 0.5
  older: WaitingCall | undefined = undefined
  newer: WaitingCall | undefined = undefined
  ended = false
  ticket = 0
  calls: GuardedCalls | undefined = undefined
  sheet: Batch
  readonly #store: FallbackStore
  readonly #listener: AnswerListener
  #asked: AskedQuestion | undefined
  #refused = true

  constructor(store: FallbackStore, batch: Batch, listener: AnswerListener) {
    this.#store = store
    this.sheet = batch
    this.#listener = listener
  }

  get hasLeft(): boolean {
    return this.#asked?.hasLeft ?? true
  }

  expire(nowMs: number): void {
    this.calls?.expire(this, nowMs)
  }

  start(): void {
    this.#asked = this.#store.askBeneath(this.sheet, this)
  }

  answered(sheet: Batch): void {
    this.calls?.answer(this, sheet)
  }

  unanswered(error: unknown): void {
    this.calls?.reject(this, error)
  }

  deliver(sheet: Batch): void {
    this.#store.note(sheet)
    this.#listener.answered(sheet)
  }

  failed(failure: StoreFailure, error: unknown): void {
    const { sheet } = this
    this.#leaveToOthers()
    try {
      this.#store.fallBack(sheet, failure, error)
      this.#refused = !sheet.allowed
    } catch (problem) {
      this.#listener.unanswered(problem)
      return
    }
    this.#listener.answered(sheet)
  }

  givenUp(error: unknown): void {
    this.#leaveToOthers()
    this.#listener.unanswered(error)
  }

  late(sheet: Batch): void {
    this.#store.endLate(sheet, this.#refused)
  }

  /** The store may still answer, and then on a sheet that nobody reads. */
  #leaveToOthers(): void {
    if (this.#asked !== undefined) this.#asked.sheet = copyQuestion(this.sheet)
  }
}

/** A call whose answer, or failure, is the caller's as it is. */
class RelayedCall<T> implements GuardedCall<T> {
  sentMs = 0.5
  older: WaitingCall | undefined = undefined
  newer: WaitingCall | undefined = undefined
  ended = false
  ticket = 0
  calls: GuardedCalls | undefined = undefined
  readonly hasLeft = true
  readonly #caller: Relayed<T>

  constructor(caller: Relayed<T>) {
    this.#caller = caller
  }

  expire(nowMs: number): void {
    this.calls?.expire(this, nowMs)
  }

  start(): void {
    this.#caller.start().then(
      (value) => this.calls?.answer(this, value),
      (error: unknown) => this.calls?.reject(this, error),
    )
  }

  deliver(value: T): void {
    this.#caller.resolve(value)
  }

  failed(failure: StoreFailure, error: unknown): void {
    this.#caller.reject(storeErrorOf(failure, error))
  }

  givenUp(error: unknown): void {
    this.#caller.reject(error)
  }

  late(): void {
    // Nobody waits for it any more.
  }
}

interface Relayed<T> {
  readonly start: () => Promise<T>
  readonly resolve: (value: T) => void
  readonly reject: (error: unknown) => void
}

const PROBLEMS: Readonly<Record<StoreFailure['cause'], string>> = {
  deadline: 'the store did not answer in time',
  unreachable: 'the store cannot be reached',
  refused: 'the store answered with an error',
  breaker: 'the store is not asked, because it failed just before',
}

/** What to tell a caller for whom there is no answer without the store. The store's own error, where it said as much. */
function storeErrorOf({ cause, charged }: StoreFailure, error: unknown): unknown {
  if (isSluiceError(error)) return error
  const details = { because: cause, problem: PROBLEMS[cause], ...(error === undefined ? {} : { cause: error }) }
  return charged === 'no'
    ? storeUnavailable({ ...details, action: 'Nothing has changed: try again later.' })
    : outcomeUnknown({ ...details, action: 'It may have happened: look before trying again.' })
}

function checkMode(mode: FailureMode): FailureMode {
  if (mode === 'open' || mode === 'closed' || mode === 'local') return mode
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: '"failureMode" of the fallback store cannot be used',
    received: mode,
    expected: "'open', 'closed' or 'local'",
  })
}

function closedError(): SluiceError {
  return new SluiceError('SLUICE_CLOSED', { problem: 'the fallback store is closed', action: 'Create a new one.' })
}
