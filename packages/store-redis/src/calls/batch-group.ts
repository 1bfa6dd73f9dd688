import type { AnswerListener, AskedQuestion, Batch } from '@sluice/core/internal'
import { codeOf } from '../wire/limit-encoding.ts'
import type { Plan } from './bulk-limits.ts'
import { planOf } from './bulk-limits.ts'

/** One batch, and who hears of its answer. */
export class Question implements AskedQuestion {
  sheet: Batch
  readonly listener: AnswerListener
  /** The next of its group. */
  next: Question | undefined = undefined
  hasLeft = false
  readonly #asked: Batch

  constructor(batch: Batch, listener: AnswerListener) {
    this.sheet = batch
    this.listener = listener
    this.#asked = batch
  }

  /** Whether whoever asked has gone on without the answer. */
  get isAbandoned(): boolean {
    return this.sheet !== this.#asked
  }
}

/**
 * Questions that ask the same of the same limits and keys, one after another: the script is told how many there are and says
 * how many it admits. Each gets the answer it would have got alone.
 *
 * A list of linked questions and not an array: one made by a literal for every question is what V8 comes to place among the
 * objects that live long, because all that are under way survive its first collections. There they hold on to the short-lived
 * ones they point to, and collections take 20 times as long.
 */
export class QuestionGroup {
  head: Question
  #tail: Question
  size = 1
  /** How a run can ask it; undefined when it must be asked in the general way. */
  readonly plan: Plan | undefined
  /** Whether nothing in it belongs to one caller alone, so that it can be asked for several at once. */
  readonly isPlain: boolean
  /** Where it stands in its turn: the number of a run, or infinity among the general questions. */
  place = 0
  /** How often the script has said that it cannot decide yet. */
  attempts = 0

  constructor(question: Question) {
    this.head = question
    this.#tail = question
    this.plan = isSimple(question.sheet) ? planOf(question.sheet) : undefined
    this.isPlain = this.plan !== undefined || isPlain(question.sheet)
  }

  /** What all of them ask. */
  get first(): Batch {
    return this.head.sheet
  }

  /** Takes in a question that asks the same. False when it does not, or when it must be asked on its own. */
  join(question: Question): boolean {
    if (!this.isPlain || this.size >= MOST_TIMES || !isSame(this.first, question.sheet)) return false
    this.#tail.next = question
    this.#tail = question
    this.size++
    return true
  }

  /** Whether nobody waits for some of them any more. */
  get hasAbandoned(): boolean {
    for (let question: Question | undefined = this.head; question !== undefined; question = question.next) {
      if (question.isAbandoned) return true
    }
    return false
  }

  /** Takes note that they go out. */
  leave(): void {
    for (let question: Question | undefined = this.head; question !== undefined; question = question.next) {
      question.hasLeft = true
    }
  }

  /** Leaves out the questions that nobody waits for. Whether any is left. */
  dropAbandoned(): boolean {
    const wanted: Question[] = []
    for (let question: Question | undefined = this.head; question !== undefined; question = question.next) {
      if (!question.isAbandoned) wanted.push(question)
    }
    this.size = wanted.length
    for (const [index, question] of wanted.entries()) question.next = wanted[index + 1]
    this.head = wanted[0] ?? this.head
    this.#tail = wanted.at(-1) ?? this.#tail
    return wanted.length > 0
  }

  /** Tells all of them that they are answered. */
  resolve(): void {
    for (let question: Question | undefined = this.head; question !== undefined; ) {
      const { listener, sheet, next }: Question = question
      question.next = undefined
      try {
        listener.answered(sheet)
      } catch (error) {
        // It must not cost the others their answers.
        listener.unanswered(error)
      }
      question = next
    }
  }

  /** Tells all of them that there is no answer. */
  reject(error: unknown): void {
    for (let question: Question | undefined = this.head; question !== undefined; ) {
      const { listener, next }: Question = question
      question.next = undefined
      listener.unanswered(error)
      question = next
    }
  }
}

/** Counted in two bytes, of which the last value says "not decided". */
const MOST_TIMES = 65_534

/** Whether a batch asks for nothing that is its own. */
function isSimple(batch: Batch): boolean {
  return !(batch.partial || batch.holder !== 0 || batch.holdMicros > 0 || batch.leaseMicros > 0)
}

function isPlain(batch: Batch): boolean {
  return isSimple(batch) && batch.items.every((item) => !codeOf(item.limit).hasList)
}

function isSame(one: Batch, other: Batch): boolean {
  if (other.charge !== one.charge || other.entitled !== one.entitled || other.items.length !== one.items.length)
    return false
  if (!isSimple(other)) return false
  for (let index = 0; index < one.items.length; index++) {
    const mine = one.items[index]!
    const its = other.items[index]!
    if (mine.limit !== its.limit || mine.cost !== its.cost || mine.key !== its.key) return false
  }
  return true
}
