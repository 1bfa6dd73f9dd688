import type { Sleep } from '@sluice/runtime'

// A message map declares every message as a function: its arguments are the payload, its result is the reply. Both are
// copied between threads, so they must be plain data:
//
//   interface ReportMessages { 'reports.thread': () => ThreadReport }

/** Payload of message `Name`. */
export type Payload<Messages, Name extends keyof Messages> = Messages[Name] extends (...payload: infer P) => unknown
  ? P
  : never

/** Reply to message `Name`. */
export type Reply<Messages, Name extends keyof Messages> = Messages[Name] extends (...payload: never) => infer R
  ? Awaited<R>
  : never

/** Handles message `Name`. What it throws rejects the call in the other thread. */
export type Handler<Messages, Name extends keyof Messages> = (
  ...payload: Payload<Messages, Name>
) => Reply<Messages, Name> | Promise<Reply<Messages, Name>>

/** The handlers of one thread, by message name. */
export class MessageHandlers<Messages> {
  readonly #handlers = new Map<string, (...payload: never) => unknown>()

  /** Registers a handler. Throws if the message has one. */
  add<Name extends keyof Messages & string>(name: Name, handler: Handler<Messages, Name>): void {
    if (this.#handlers.has(name)) throw new Error(`message "${name}" already has a handler`)
    this.#handlers.set(name, handler)
  }

  /** Runs the handler of a message that arrived. Rejects if there is none. */
  async run(name: string, payload: readonly unknown[]): Promise<unknown> {
    const handler = this.#handlers.get(name)
    if (handler === undefined) throw new Error(`message "${name}" has no handler`)
    // All threads run the same program, and senders are typed by the same map.
    return await handler(...(payload as never))
  }
}

/** One end of a connection between two threads: a `Worker`, a `parentPort` or a `MessagePort`. */
export interface ThreadPort {
  postMessage(message: unknown): void
  on(event: 'message', listener: (message: unknown) => void): unknown
}

type Envelope =
  | { readonly kind: 'call'; readonly id: number; readonly name: string; readonly payload: readonly unknown[] }
  | { readonly kind: 'reply'; readonly id: number; readonly reply: unknown }
  | { readonly kind: 'failure'; readonly id: number; readonly error: FailureData }

/** What remains of an error that is sent to another thread. */
interface FailureData {
  readonly name: string
  readonly message: string
  readonly code: unknown
}

interface PendingCall {
  readonly resolve: (reply: unknown) => void
  readonly reject: (error: unknown) => void
}

const TIMEOUT = 'THREAD_TIMEOUT'

/** Calls between two threads, in both directions. Replies may arrive in any order. */
export class ThreadLink<Sent, Received> {
  readonly #port: ThreadPort
  readonly #sleep: Sleep
  readonly #handlers = new MessageHandlers<Received>()
  readonly #pending = new Map<number, PendingCall>()
  #lastId = 0
  #isClosed = false

  constructor(port: ThreadPort, sleep: Sleep) {
    this.#port = port
    this.#sleep = sleep
    // Only a link writes to the other end of the port.
    port.on('message', (message) => this.#receive(message as Envelope))
  }

  handle<Name extends keyof Received & string>(name: Name, handler: Handler<Received, Name>): void {
    this.#handlers.add(name, handler)
  }

  /**
   * Calls the other thread. Rejects with what its handler threw, with code `THREAD_TIMEOUT` after `timeoutMs`, and with
   * `THREAD_ENDED` if the link is closed.
   */
  async call<Name extends keyof Sent & string>(
    timeoutMs: number,
    name: Name,
    ...payload: Payload<Sent, Name>
  ): Promise<Reply<Sent, Name>> {
    return (await this.send(timeoutMs, name, payload)) as Reply<Sent, Name>
  }

  /** `call` for a message whose name is not known at compile time. */
  async send(timeoutMs: number, name: string, payload: readonly unknown[]): Promise<unknown> {
    if (this.#isClosed) throw threadError('THREAD_ENDED', name)
    const id = ++this.#lastId
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    this.#pending.set(id, { resolve, reject })
    const settled = new AbortController()
    const timer = this.#sleep(timeoutMs, settled.signal).then(
      () => reject(threadError(TIMEOUT, name)),
      () => undefined,
    )
    try {
      this.#port.postMessage({ kind: 'call', id, name, payload } satisfies Envelope)
      return await promise
    } finally {
      this.#pending.delete(id)
      settled.abort()
      await timer
    }
  }

  /** Rejects pending calls. Later messages are ignored. */
  close(): void {
    this.#isClosed = true
    for (const { reject } of this.#pending.values()) reject(threadError('THREAD_ENDED', 'a pending call'))
  }

  #receive(message: Envelope): void {
    if (this.#isClosed) return
    if (message.kind === 'call') {
      void this.#run(message)
      return
    }
    const call = this.#pending.get(message.id)
    if (message.kind === 'reply') call?.resolve(message.reply)
    else call?.reject(Object.assign(new Error(message.error.message), message.error))
  }

  async #run({ id, name, payload }: Extract<Envelope, { kind: 'call' }>): Promise<void> {
    try {
      this.#post({ kind: 'reply', id, reply: await this.#handlers.run(name, payload) })
    } catch (error) {
      this.#post({ kind: 'failure', id, error: failureData(error) })
    }
  }

  #post(message: Envelope): void {
    if (!this.#isClosed) this.#port.postMessage(message)
  }
}

/** Whether a call failed because no reply arrived in time. */
export function isThreadTimeout(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === TIMEOUT
}

function failureData(error: unknown): FailureData {
  if (!(error instanceof Error)) return { name: 'Error', message: String(error), code: undefined }
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  return { name: error.name, message: error.message, code }
}

function threadError(code: typeof TIMEOUT | 'THREAD_ENDED', name: string): Error {
  const message =
    code === TIMEOUT ? `a thread did not reply to "${name}" in time` : `a thread ended before it replied to "${name}"`
  return Object.assign(new Error(message), { code })
}
