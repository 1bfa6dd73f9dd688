import type { Timers } from '@sluice/core'
import type { Question, QuestionGroup } from './batch-group.ts'
import type { CallPlan } from './call-builder.ts'
import { Turn } from './call-builder.ts'
import type { DecideReply } from './decide-reply.ts'

/** Most subjects in one call: a script holds up everybody else for as long as it runs, here about 0.3 ms. */
const MOST_SUBJECTS = 128

/** Fewer questions are not worth a call of their own while another is under way, or before the turn ends. */
const LEAST_CALL = 32

/** So many leave before the turn ends also where it is not known that as many will be asked again. */
const LEAST_FIRST = 64

/** What has gathered waits for a call under way, and for more to make a good call of, no longer than this. */
const HELD_MS = 1

/**
 * So many calls keep Redis busy: one is being decided, one lies ready. What is asked beyond that is better collected, because
 * it becomes fewer and larger calls, and because this process can see to answers while Redis decides, instead of both
 * waiting for each other in turns.
 */
const STEADY_CALLS = 2

/** When a network is slower than Redis, another call may go out after so long, up to so many. */
const SLOW_AFTER_MS = 0.3
const MOST_CALLS = 64

/** With as many under way, one goes out after so long: a connection that hangs is found by what is sent. */
const HANGING_AFTER_MS = 1000

/** What a {@link CallLine} works with. */
export interface CallLineParts {
  /** Whether every subject needs a call of its own; then calls are not held back, since they go to different nodes. */
  readonly isCluster: boolean
  /** Whether calls leave the process at the end of the turn they were made in, instead of at once. */
  readonly writesLater: boolean
  readonly monotonicMs: () => number
  /** Runs something after everything that is ready now, in this turn of the event loop. */
  readonly atTurnEnd: (run: () => void) => void
  readonly timers: Timers
  /** Makes a call. */
  readonly call: (plan: CallPlan) => Promise<DecideReply>
  /** Is told how a call ended. */
  readonly answered: (plan: CallPlan, reply: DecideReply) => void
  readonly failed: (plan: CallPlan, error: unknown) => void
}

/**
 * Questions on their way out. With nothing under way they leave at the end of the turn they were asked in; while calls are
 * under way they gather, and leave at the end of the turn in which the next one is answered, or after a millisecond.
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
  /** What was answered and not yet told. */
  readonly #replies: { readonly plan: CallPlan; readonly reply: DecideReply }[] = []
  /** Whether an answer is being told, and those who got it have not gone on yet. */
  #isTelling = false
  #lastSentMs = 0
  #cancelWake: (() => void) | undefined
  /** Whether this turn's end has been asked for. */
  #endAsked = false
  /** Whether nothing was under way when the first of this turn's questions was asked; and whether such a turn is ending. */
  #beganIdle = false
  #isEnding = false
  readonly #endTurn = (): void => {
    this.#endAsked = false
    this.#isEnding = this.#beganIdle
    this.#send()
    this.#isEnding = false
    if (!this.#parts.writesLater) this.#tell()
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
    this.#cancelWake?.()
  }

  #openTurn(): Turn {
    if (!this.#endAsked) {
      this.#endAsked = true
      this.#beganIdle = this.#inFlight === 0
      this.#parts.atTurnEnd(this.#endTurn)
    }
    return this.#turn
  }

  /**
   * Whether what was gathered makes a good call: a full one, or half of as many questions as have been open at once. Callers
   * that ask again when they are answered come in two halves then, and one is decided while the other is told.
   */
  #isGoodCall(): boolean {
    const least = this.#mostOpen < LEAST_CALL ? LEAST_FIRST : Math.max(LEAST_CALL, this.#mostOpen / 2)
    return this.#turn.size >= MOST_SUBJECTS || this.#questions >= least
  }

  /** Sends what may be sent. */
  #send(): void {
    while (this.#waiting.length > 0 || this.#turn.size > 0) {
      if (!this.#maySend()) {
        this.#wakeLater()
        return
      }
      if (this.#waiting.length === 0) {
        this.#waiting = this.#turn.calls(MOST_SUBJECTS, this.#parts.isCluster)
        this.#turn = new Turn()
        this.#questions = 0
      }
      const plan = this.#stillWanted(this.#waiting.shift()!)
      if (plan !== undefined) void this.#make(plan)
    }
  }

  /** Looks again soon: nothing else may happen here until a call under way is answered, which may be long. */
  #wakeLater(): void {
    if (this.#cancelWake !== undefined) return
    const delayMs = this.#inFlight < MOST_CALLS ? HELD_MS : HANGING_AFTER_MS
    this.#cancelWake = this.#parts.timers.schedule(delayMs, () => {
      this.#cancelWake = undefined
      this.#send()
    })
  }

  #maySend(): boolean {
    // What was asked in one turn, of a line that had nothing to do, leaves in that turn.
    if (this.#inFlight === 0 || this.#isEnding || this.#parts.isCluster) return true
    if (this.#inFlight >= MOST_CALLS) return this.#sentBefore(HANGING_AFTER_MS)
    // To keep full calls back makes them no fewer.
    if (this.#waiting.length > 1 || this.#turn.size >= MOST_SUBJECTS) return true
    if (this.#inFlight >= STEADY_CALLS) return this.#sentBefore(SLOW_AFTER_MS)
    // With few callers nothing is gained by waiting for more.
    const isFew = this.#mostOpen < LEAST_CALL
    return isFew || this.#waiting.length > 0 || this.#isGoodCall() || this.#sentBefore(HELD_MS)
  }

  /** Whether the last call left so many milliseconds ago, or longer. */
  #sentBefore(ms: number): boolean {
    return this.#parts.monotonicMs() - this.#lastSentMs >= ms
  }

  /** Makes one call. Never rejects. */
  async #make(plan: CallPlan): Promise<void> {
    for (const group of groupsIn(plan)) group.leave()
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
    this.#replies.push({ plan, reply })
    if (this.#turn.size === 0 && this.#waiting.length === 0) this.#tell()
    else this.#tellAfterSending()
  }

  /**
   * Tells at the end of this turn, after what has gathered was sent: while Redis is at work. What is read in the rest of the turn
   * goes with that. A client that writes at the end of the turn has to be given its call before, and is let through first.
   */
  #tellAfterSending(): void {
    if (this.#parts.writesLater) {
      this.#send()
      this.#parts.atTurnEnd(() => this.#tell())
    } else {
      this.#openTurn()
    }
  }

  /** A plan without the questions that nobody waits for any more: they must not be charged. Undefined when none is left. */
  #stillWanted(plan: CallPlan): CallPlan | undefined {
    if (!groupsIn(plan).some((group) => group.hasAbandoned)) return plan
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
   * Tells what was answered, one call after another. Whoever gets an answer often asks again at once: if that makes a good call,
   * it leaves the process before the next answers are told, so that here too one side works while the other does.
   */
  #tell(): void {
    if (this.#isTelling) return
    const next = this.#replies.shift()
    if (next === undefined) return
    this.#isTelling = true
    try {
      this.#parts.answered(next.plan, next.reply)
    } finally {
      void Promise.resolve().then(() => {
        this.#isTelling = false
        this.#tell()
      })
    }
  }
}

function groupsIn(plan: CallPlan): readonly QuestionGroup[] {
  return plan.runs.length === 1 && plan.groups.length === 0
    ? plan.runs[0]!.groups
    : [...plan.runs.flatMap((run) => run.groups), ...plan.groups]
}

function questionsIn(plan: CallPlan): number {
  let count = 0
  for (const group of groupsIn(plan)) count += group.size
  return count
}
