import type { ThreadLink } from './thread-link.ts'
import { isSilence } from './thread-link.ts'

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
  readonly #forAll = new TopicHandlers()

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
  readonly #own = new TopicHandlers()
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

/** On this topic the main thread tells whether there are as many threads as there should be. */
export const THREADS_TOPIC = 'threads'

/**
 * The threads of this process that answer requests. Questions and answers are plain data: they are copied from thread to
 * thread.
 */
export interface ThreadGroup {
  /** This thread, 0 to `count` - 1; -1 in a main thread that answers no requests itself. */
  readonly index: number
  /** How many there should be. */
  readonly count: number
  /** From now on this thread answers questions on `topic`, and every other that answers requests as well. Once for each topic. */
  answer(topic: string, give: (question: unknown) => unknown): void
  /**
   * Asks every thread that answers requests or is about to, this one among them, and gives the answers in the order of the
   * threads. A thread that has ended, that fails or that does not answer within seconds is left out; `ifSilent` stands for one
   * that is there and does not answer in time.
   */
  gather<T>(topic: string, question?: unknown, ifSilent?: T): Promise<readonly T[]>
  /** Asks the main thread, of which there is one. Rejects when nobody answers the topic there, and with what the answer threw. */
  askMain<T>(topic: string, question?: unknown): Promise<T>
}

/** The part of the main thread in a group. */
export interface MainThread extends ThreadGroup {
  /** From now on the main thread answers questions on `topic` for all. Once for each topic. */
  answerForAll(topic: string, give: (question: unknown) => unknown): void
}

/** The group of a process that has no further threads. */
export class SingleThread implements MainThread {
  readonly index = 0
  readonly count = 1
  readonly #own = new TopicHandlers()
  readonly #forAll = new TopicHandlers()

  answer(topic: string, give: (question: unknown) => unknown): void {
    this.#own.add(topic, give)
  }

  answerForAll(topic: string, give: (question: unknown) => unknown): void {
    this.#forAll.add(topic, give)
  }

  async gather<T>(topic: string, question?: unknown): Promise<readonly T[]> {
    try {
      // Only whoever asks and whoever answers know what a topic is about.
      return [(await this.#own.give(topic, question)) as T]
    } catch {
      return []
    }
  }

  async askMain<T>(topic: string, question?: unknown): Promise<T> {
    return (await this.#forAll.give(topic, question)) as T
  }
}

/** Who answers which topic in one thread. */
class TopicHandlers {
  readonly #answers = new Map<string, (question: unknown) => unknown>()

  add(topic: string, give: (question: unknown) => unknown): void {
    if (this.#answers.has(topic)) throw new Error(`"${topic}" is answered already`)
    this.#answers.set(topic, give)
  }

  /** Rejects when nobody answers the topic. */
  async give(topic: string, question: unknown): Promise<unknown> {
    const give = this.#answers.get(topic)
    if (give === undefined) throw new Error(`nobody answers "${topic}"`)
    return await give(question)
  }
}
