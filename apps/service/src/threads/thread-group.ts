import { TopicAnswers } from './topic-handlers.ts'

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
  readonly #own = new TopicAnswers()
  readonly #forAll = new TopicAnswers()

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
