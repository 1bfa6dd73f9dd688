import type { DecideReply } from './decide-reply.ts'
import type { Question, QuestionGroup } from './question-group.ts'
import type { CallPlan } from './turn.ts'
import { Turn } from './turn.ts'

/** Most subjects in one call: a script holds up everybody else for as long as it runs, here about 0.3 ms. */
const MOST_SUBJECTS = 128

/** Fewer questions are not worth a call of their own before the turn ends. */
const LEAST_EARLY = 64

/**
 * So many calls keep Redis busy: one is being decided, one lies ready. What is asked beyond that is better collected, because
 * it becomes fewer and larger calls, and because this process can see to answers while Redis decides, instead of both
 * waiting for each other in turns.
 */
const STEADY_CALLS = 2

/** When a network is slower than Redis, another call may go out after so long, up to so many. */
const SLOW_AFTER_MS = 0.3
const MOST_CALLS = 64

/** What a {@link CallLine} works with. */
export interface CallLineParts {
  /** Whether every subject needs a call of its own; then calls are not held back, since they go to different nodes. */
  readonly isCluster: boolean
  readonly monotonicMs: () => number
  /** Runs something after everything that is ready now, in this turn of the event loop. */
  readonly atTurnEnd: (run: () => void) => void
  /** Makes a call. */
  readonly call: (plan: CallPlan) => Promise<DecideReply>
  /** Is told how a call ended. */
  readonly answered: (plan: CallPlan, reply: DecideReply) => void
  readonly failed: (plan: CallPlan, error: unknown) => void
}

/**
 * Questions on their way out. With nothing under way they leave at the end of the turn they were asked in; while calls are
 * under way they gather, and leave at the latest when the next one is answered.
 */
export class CallLine {
  readonly #parts: CallLineParts
  #turn = new Turn()
  /** Questions of the turn. */
  #questions = 0
  /** Questions not yet answered, and the most there were of late. */
  #open = 0
  #mostOpen = 0
  /** Calls of an earlier turn that have not gone out yet. */
  #waiting: CallPlan[] = []
  #inFlight = 0
  /** What was answered and not yet told; the first is being told. */
  readonly #replies: { readonly plan: CallPlan; readonly reply: DecideReply }[] = []
  #lastSentMs = 0
  /** Whether questions have been held back, so that some may have been given up meanwhile. */
  #isLate = false
  /** Whether this turn's end has been asked for. */
  #endAsked = false
  readonly #endTurn = (): void => {
    this.#endAsked = false
    this.#send()
  }

  constructor(parts: CallLineParts) {
    this.#parts = parts
  }

  add(question: Question): void {
    this.#openTurn().add(question)
    this.#questions++
    this.#open++
    // A good call does not wait for the end of the turn.
    if (this.#inFlight < STEADY_CALLS && this.#isGoodCall()) this.#send()
  }

  /** Adds questions that were asked before and could not be decided. */
  addAgain(group: QuestionGroup): void {
    this.#openTurn().addGroup(group)
    this.#questions += group.size
    this.#open += group.size
  }

  /** Turns away all that have not gone out. */
  close(error: unknown): void {
    for (const plan of [...this.#waiting, ...this.#turn.calls(MOST_SUBJECTS, false)]) this.#parts.failed(plan, error)
    this.#waiting = []
    this.#turn = new Turn()
  }

  #openTurn(): Turn {
    if (!this.#endAsked) {
      this.#endAsked = true
      this.#parts.atTurnEnd(this.#endTurn)
    }
    return this.#turn
  }

  /**
   * Whether what was gathered makes a good call: a full one, or half of as many questions as have been open at once. Callers
   * that ask again when they are answered come in two halves then, and one is decided while the other is told.
   */
  #isGoodCall(): boolean {
    return this.#turn.size >= MOST_SUBJECTS || this.#questions >= Math.max(LEAST_EARLY, this.#mostOpen / 2)
  }

  /** Sends what may be sent. */
  #send(): void {
    while (this.#waiting.length > 0 || this.#turn.size > 0) {
      if (!this.#maySend()) {
        this.#isLate = true
        return
      }
      if (this.#waiting.length === 0) {
        this.#waiting = this.#turn.calls(MOST_SUBJECTS, this.#parts.isCluster)
        this.#turn = new Turn()
        this.#questions = 0
      }
      const plan = this.#waiting.shift()!
      const wanted = this.#isLate ? this.#stillWanted(plan) : plan
      if (wanted !== undefined) void this.#make(wanted)
    }
    this.#isLate = false
  }

  #maySend(): boolean {
    if (this.#inFlight === 0 || this.#parts.isCluster) return true
    if (this.#inFlight < STEADY_CALLS) {
      // With few callers nothing is gained by waiting for more.
      return this.#mostOpen < 2 * LEAST_EARLY || this.#waiting.length > 0 || this.#isGoodCall()
    }
    return this.#inFlight < MOST_CALLS && this.#parts.monotonicMs() - this.#lastSentMs >= SLOW_AFTER_MS
  }

  /** Makes one call. Never rejects. */
  async #make(plan: CallPlan): Promise<void> {
    this.#inFlight++
    this.#lastSentMs = this.#parts.monotonicMs()
    let reply: DecideReply
    try {
      reply = await this.#parts.call(plan)
    } catch (error) {
      this.#noteEnd(plan)
      this.#parts.failed(plan, error)
      this.#send()
      return
    }
    this.#noteEnd(plan)
    const before = this.#inFlight
    this.#send()
    if (this.#inFlight > before) {
      // What was gathered leaves the process at the end of the turn. The answers are told after that, while Redis is at work.
      this.#parts.atTurnEnd(() => this.#parts.answered(plan, reply))
      return
    }
    this.#replies.push({ plan, reply })
    if (this.#replies.length === 1) this.#tellNext()
  }

  /** A plan without the questions that nobody waits for any more: they must not be charged. Undefined when none is left. */
  #stillWanted(plan: CallPlan): CallPlan | undefined {
    const before = questionsIn(plan)
    const runs = plan.runs
      .map((run) => ({ ...run, groups: run.groups.filter((group) => group.dropAbandoned()) }))
      .filter((run) => run.groups.length > 0)
    const wanted = { runs, groups: plan.groups.filter((group) => group.dropAbandoned()) }
    const left = questionsIn(wanted)
    this.#open -= before - left
    return left > 0 ? wanted : undefined
  }

  #noteEnd(plan: CallPlan): void {
    this.#inFlight--
    this.#mostOpen = Math.max(this.#open, this.#mostOpen - this.#mostOpen / 64)
    this.#open -= questionsIn(plan)
  }

  /**
   * Tells the answers of one call. Whoever gets one often asks again at once: that leaves the process before the next answers
   * are told, so that here too one side works while the other does.
   */
  #tellNext(): void {
    const { plan, reply } = this.#replies[0]!
    this.#parts.answered(plan, reply)
    queueMicrotask(() => {
      this.#replies.shift()
      if (this.#replies.length > 0) this.#parts.atTurnEnd(() => this.#tellNext())
    })
  }
}

function questionsIn(plan: CallPlan): number {
  let count = 0
  for (const run of plan.runs) for (const group of run.groups) count += group.size
  for (const group of plan.groups) count += group.size
  return count
}
