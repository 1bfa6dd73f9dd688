import type { Sleep } from '@sluice/runtime'

/** One end of what connects two threads: a `Worker`, a `parentPort` or a `MessagePort`. */
export interface ThreadPort {
  postMessage(message: unknown): void
  on(event: 'message', listener: (message: unknown) => void): unknown
}

/** What a {@link ThreadLink} is made of. */
export interface ThreadLinkParts {
  readonly port: ThreadPort
  /** Answers what the other end asks. */
  readonly answer: (topic: string, question: unknown) => unknown
  readonly sleep: Sleep
}

type Message =
  | { readonly kind: 'ask'; readonly id: number; readonly topic: string; readonly question: unknown }
  | { readonly kind: 'answer'; readonly id: number; readonly answer: unknown }
  | { readonly kind: 'failure'; readonly id: number; readonly error: FailureData }

/** What is left of an error on its way to another thread. */
interface FailureData {
  readonly name: string
  readonly message: string
  readonly code: unknown
}

interface Waiting {
  readonly resolve: (answer: unknown) => void
  readonly reject: (error: unknown) => void
}

const SILENT = 'THREAD_SILENT'

/** Questions and answers between two threads: plain data, each question with one answer, in any order. */
export class ThreadLink {
  readonly #parts: ThreadLinkParts
  readonly #waiting = new Map<number, Waiting>()
  #lastId = 0
  #isClosed = false

  constructor(parts: ThreadLinkParts) {
    this.#parts = parts
    parts.port.on('message', (message) => this.#take(message as Message))
  }

  /**
   * Asks the other end. Rejects with what its answer threw, with an error of this code `THREAD_SILENT` when none came within
   * `withinMs`, and `THREAD_ENDED` when the link was closed.
   */
  async ask<T>(topic: string, question: unknown, withinMs: number): Promise<T> {
    if (this.#isClosed) throw threadError('THREAD_ENDED', topic)
    const id = ++this.#lastId
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    this.#waiting.set(id, { resolve, reject })
    const answered = new AbortController()
    const silence = this.#parts.sleep(withinMs, answered.signal).then(
      () => reject(threadError(SILENT, topic)),
      () => undefined,
    )
    try {
      this.#parts.port.postMessage({ kind: 'ask', id, topic, question } satisfies Message)
      // Whoever asks knows what the topic is about.
      return (await promise) as T
    } finally {
      this.#waiting.delete(id)
      answered.abort()
      await silence
    }
  }

  /** Nothing is asked and answered any more. */
  close(): void {
    this.#isClosed = true
    for (const { reject } of this.#waiting.values()) reject(threadError('THREAD_ENDED', 'what was asked'))
  }

  #take(message: Message): void {
    if (this.#isClosed) return
    if (message.kind === 'ask') {
      void this.#reply(message)
      return
    }
    const waiting = this.#waiting.get(message.id)
    if (message.kind === 'answer') waiting?.resolve(message.answer)
    else waiting?.reject(Object.assign(new Error(message.error.message), message.error))
  }

  async #reply({ id, topic, question }: Extract<Message, { kind: 'ask' }>): Promise<void> {
    try {
      this.#post({ kind: 'answer', id, answer: await this.#parts.answer(topic, question) })
    } catch (error) {
      this.#post({ kind: 'failure', id, error: failureData(error) })
    }
  }

  #post(message: Message): void {
    if (!this.#isClosed) this.#parts.port.postMessage(message)
  }
}

/** Whether an error of {@link ThreadLink.ask} says that no answer came in time. */
export function isSilence(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === SILENT
}

function failureData(error: unknown): FailureData {
  if (!(error instanceof Error)) return { name: 'Error', message: String(error), code: undefined }
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  return { name: error.name, message: error.message, code }
}

function threadError(code: typeof SILENT | 'THREAD_ENDED', topic: string): Error {
  const message =
    code === SILENT ? `a thread did not answer "${topic}"` : `a thread ended before it answered "${topic}"`
  return Object.assign(new Error(message), { code })
}
