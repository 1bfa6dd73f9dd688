import type { DecideReply } from './decide-reply.ts'
import type { Question, QuestionGroup } from './question-group.ts'
import type { CallPlan } from './turn.ts'
import { Turn } from './turn.ts'

/** Most subjects in one call: a script holds up everybody else for as long as it runs. */
const MOST_SUBJECTS = 64

/** So many questions do not wait for the end of the turn while Redis has little to do, and no more subjects than fit a call. */
const EARLY_QUESTIONS = 128

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
  /** Calls of an earlier turn that have not gone out yet. */
  #waiting: CallPlan[] = []
  #inFlight = 0
  /** What was answered and not yet told; the first is being told. */
  readonly #replies: { readonly plan: CallPlan; readonly reply: DecideReply }[] = []
  #lastSentMs = 0
  /** Whether questions have been held back, so that some may have been given up meanwhile. */
  #isLate = false

  constructor(parts: CallLineParts) {
    this.#parts = parts
  }

  add(question: Question): void {
    this.#open().add(question)
    this.#questions++
    if (this.#inFlight >= STEADY_CALLS) return
    if (this.#turn.size >= MOST_SUBJECTS || this.#questions >= EARLY_QUESTIONS) this.#send()
  }

  /** Adds questions that were asked before and could not be decided. */
  addAgain(group: QuestionGroup): void {
    this.#open().addGroup(group)
  }

  /** Turns away all that have not gone out. */
  close(error: unknown): void {
    for (const plan of [...this.#waiting, ...this.#turn.calls(MOST_SUBJECTS, false)]) this.#parts.failed(plan, error)
    this.#waiting = []
    this.#turn = new Turn()
  }

  #open(): Turn {
    if (this.#turn.size === 0) this.#parts.atTurnEnd(() => this.#send())
    return this.#turn
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
      const wanted = this.#isLate ? stillWanted(plan) : plan
      if (wanted !== undefined) void this.#make(wanted)
    }
    this.#isLate = false
  }

  #maySend(): boolean {
    if (this.#inFlight < STEADY_CALLS || this.#parts.isCluster) return true
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
      this.#inFlight--
      this.#parts.failed(plan, error)
      this.#send()
      return
    }
    this.#inFlight--
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

/** A plan without the questions that nobody waits for any more: they must not be charged. Undefined when none is left. */
function stillWanted(plan: CallPlan): CallPlan | undefined {
  const runs = plan.runs
    .map((run) => ({ ...run, groups: run.groups.filter((group) => group.dropAbandoned()) }))
    .filter((run) => run.groups.length > 0)
  const groups = plan.groups.filter((group) => group.dropAbandoned())
  return runs.length > 0 || groups.length > 0 ? { runs, groups } : undefined
}
