import type { AnswerListener, AskedQuestion, Batch } from '@sluice/core/internal'
import { codeOf } from './limit-code.ts'

/** One batch, and who hears of its answer. */
export class Question implements AskedQuestion {
  sheet: Batch
  readonly listener: AnswerListener

  constructor(batch: Batch, listener: AnswerListener) {
    this.sheet = batch
    this.listener = listener
  }
}

/**
 * Questions that ask the same of the same limits and keys, one after another: the script is told how many there are and says
 * how many it admits. Each gets the answer it would have got alone.
 */
export class QuestionGroup {
  readonly questions: Question[]
  /** Whether nothing in it belongs to one caller alone, so that it can be asked for several at once. */
  readonly isPlain: boolean
  /** How often the script has said that it cannot decide yet. */
  attempts = 0

  constructor(question: Question) {
    this.questions = [question]
    this.isPlain = isPlain(question.sheet)
  }

  /** What all of them ask. */
  get first(): Batch {
    return this.questions[0]!.sheet
  }

  /** Takes in a question that asks the same. False when it does not, or when it must be asked on its own. */
  join(question: Question): boolean {
    if (!this.isPlain || this.questions.length >= MOST_TIMES || !isSame(this.first, question.sheet)) return false
    this.questions.push(question)
    return true
  }

  /** Tells all of them that they are answered. */
  resolve(): void {
    for (const { listener, sheet } of this.questions) listener.answered(sheet)
  }

  /** Tells all of them that there is no answer. */
  reject(error: unknown): void {
    for (const { listener } of this.questions) listener.unanswered(error)
  }
}

/** Counted in two bytes, of which the last value says "not decided". */
const MOST_TIMES = 65_534

function isPlain(batch: Batch): boolean {
  if (batch.partial || batch.holder !== 0 || batch.holdMicros > 0 || batch.leaseMicros > 0) return false
  return batch.items.every((item) => !codeOf(item.limit).hasList)
}

function isSame(one: Batch, other: Batch): boolean {
  if (other.charge !== one.charge || other.entitled !== one.entitled || other.items.length !== one.items.length)
    return false
  if (other.partial || other.holder !== 0 || other.holdMicros > 0 || other.leaseMicros > 0) return false
  for (let index = 0; index < one.items.length; index++) {
    const [mine, its] = [one.items[index]!, other.items[index]!]
    if (mine.limit !== its.limit || mine.cost !== its.cost || mine.key !== its.key) return false
  }
  return true
}
