import type { MainThread, ThreadGroup } from './thread-group.ts'
import type { ThreadLink } from './thread-link.ts'
import { isSilence } from './thread-link.ts'
import { TopicAnswers } from './topic-handlers.ts'

/** How long an answer of another thread may take. */
const ANSWER_MS = 2000

/** By these a thread has the main thread ask for it. */
const GATHER = 'group.gather'
const ASK_MAIN = 'group.main'

interface Passed {
  readonly topic: string
  readonly question: unknown
  readonly ifSilent?: unknown
}

/** The group as the main thread has it: it knows all others. */
export class ThreadHub implements MainThread {
  readonly index = -1
  readonly count: number
  readonly #links = new Map<number, ThreadLink>()
  /** Those that answer requests. */
  readonly #answering = new Set<ThreadLink>()
  readonly #forAll = new TopicAnswers()

  constructor(count: number) {
    this.count = count
  }

  /** Threads that answer requests. */
  get alive(): number {
    return this.#answering.size
  }

  /**
   * A thread is there and is asked what all are asked, although it answers no requests yet. It takes the place of the one that
   * had its number.
   */
  enter(index: number, link: ThreadLink): void {
    const before = this.#links.get(index)
    if (before !== undefined) this.#answering.delete(before)
    this.#links.set(index, link)
  }

  /** A thread answers requests. */
  join(index: number, link: ThreadLink): void {
    if (this.#links.get(index) !== link) this.enter(index, link)
    this.#answering.add(link)
  }

  /** A thread is gone, unless another has taken its place already. */
  part(index: number, link: ThreadLink): void {
    if (this.#links.get(index) !== link) return
    this.#links.delete(index)
    this.#answering.delete(link)
  }

  answer(topic: string): void {
    throw new Error(`the main thread answers no requests, and so not "${topic}"`)
  }

  answerForAll(topic: string, give: (question: unknown) => unknown): void {
    this.#forAll.add(topic, give)
  }

  async gather<T>(topic: string, question?: unknown, ifSilent?: T): Promise<readonly T[]> {
    const links = [...this.#links].sort(([one], [other]) => one - other).map(([, link]) => link)
    const asked = await Promise.allSettled(links.map((link) => link.ask<T>(topic, question, ANSWER_MS)))
    return asked.flatMap((outcome): readonly T[] => {
      if (outcome.status === 'fulfilled') return [outcome.value]
      return ifSilent !== undefined && isSilence(outcome.reason) ? [ifSilent] : []
    })
  }

  async askMain<T>(topic: string, question?: unknown): Promise<T> {
    // Only whoever asks and whoever answers know what a topic is about.
    return (await this.#forAll.give(topic, question)) as T
  }

  /** Answers what a thread asks. */
  serve(topic: string, question: unknown): Promise<unknown> {
    const passed = question as Passed
    if (topic === GATHER) return this.gather(passed.topic, passed.question, passed.ifSilent)
    if (topic === ASK_MAIN) return this.askMain(passed.topic, passed.question)
    return Promise.reject(new Error(`the main thread does not know "${topic}"`))
  }
}

/** The group as a thread has it that answers requests: it knows the main thread. */
export class ThreadMember implements ThreadGroup {
  readonly index: number
  readonly count: number
  readonly #own = new TopicAnswers()
  readonly #link: () => ThreadLink

  /** `link`: to the main thread. */
  constructor({
    index,
    count,
    link,
  }: { readonly index: number; readonly count: number; readonly link: () => ThreadLink }) {
    this.index = index
    this.count = count
    this.#link = link
  }

  answer(topic: string, give: (question: unknown) => unknown): void {
    this.#own.add(topic, give)
  }

  gather<T>(topic: string, question?: unknown, ifSilent?: T): Promise<readonly T[]> {
    return this.#pass(GATHER, { topic, question, ifSilent })
  }

  askMain<T>(topic: string, question?: unknown): Promise<T> {
    return this.#pass(ASK_MAIN, { topic, question })
  }

  /** Answers what the main thread asks. */
  serve(topic: string, question: unknown): Promise<unknown> {
    return this.#own.give(topic, question)
  }

  /** Main waits so long itself, for others. */
  #pass<T>(how: string, passed: Passed): Promise<T> {
    return this.#link().ask<T>(how, passed, 2 * ANSWER_MS)
  }
}
