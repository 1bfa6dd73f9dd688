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
class MessageHandlers<Messages> {
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
function isThreadTimeout(error: unknown): boolean {
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

/** Replies of several threads. */
export interface Gathered<T> {
  /** In the order of the threads. Threads that fail or end are left out. */
  readonly replies: readonly T[]
  /** Number of threads that exist and did not reply in time. */
  readonly timedOut: number
}

/**
 * The message bus as a thread that serves requests sees it. `Messages` declares the payload and the reply of each
 * message.
 */
export interface ThreadGroup<out Messages> {
  /** Number of this thread, 0 to `count` - 1. */
  readonly index: number
  /** Number of threads that should serve requests. */
  readonly count: number
  /** Registers the handler of a message in this thread. Once per message; every thread registers the same ones. */
  handle<Name extends keyof Messages & string>(name: Name, handler: Handler<Messages, Name>): void
  /** Calls every thread that serves requests or is starting, including this one. */
  gather<Name extends keyof Messages & string>(
    name: Name,
    ...payload: Payload<Messages, Name>
  ): Promise<Gathered<Reply<Messages, Name>>>
  /** Calls the main thread. Rejects with what its handler throws, and if it has no handler. */
  callMain<Name extends keyof Messages & string>(
    name: Name,
    ...payload: Payload<Messages, Name>
  ): Promise<Reply<Messages, Name>>
}

/** The message bus as the main thread sees it. */
export interface MainThread<out Messages> extends Pick<ThreadGroup<Messages>, 'gather' | 'callMain'> {
  /** Registers the handler of a message in the main thread. Once per message. */
  handleInMain<Name extends keyof Messages & string>(name: Name, handler: Handler<Messages, Name>): void
}

/** What the bus of a thread sends to the main thread: messages whose names and types only the sender knows. */
export interface ToMain {
  'bus.gather': (name: string, payload: readonly unknown[]) => Gathered<unknown>
  'bus.callMain': (name: string, payload: readonly unknown[]) => unknown
}

/** Time to reply, in milliseconds. A thread that calls through the main thread waits twice as long. */
const REPLY_TIMEOUT_MS = 2000

type WorkerLink = Pick<ThreadLink<object, ToMain>, 'handle' | 'send'>

/** The bus in a main thread that serves no requests: it has a link to every thread that does. */
export class ThreadHub<Messages> implements MainThread<Messages> {
  readonly count: number
  readonly #links = new Map<number, WorkerLink>()
  readonly #serving = new Set<WorkerLink>()
  readonly #handlers = new MessageHandlers<Messages>()

  /** `count`: number of threads that should serve requests. */
  constructor(count: number) {
    this.count = count
  }

  /** Number of threads that serve requests. */
  get alive(): number {
    return this.#serving.size
  }

  /** Lets a thread call the main thread and, through it, all others. Call it once per link. */
  attach(link: WorkerLink): void {
    link.handle('bus.gather', (name, payload) => this.#gather(name, payload))
    link.handle('bus.callMain', (name, payload) => this.#handlers.run(name, payload))
  }

  /**
   * From now on `gather` includes the thread, although it serves no requests yet. It replaces the one with its number.
   */
  enter(index: number, link: WorkerLink): void {
    const before = this.#links.get(index)
    if (before !== undefined) this.#serving.delete(before)
    this.#links.set(index, link)
  }

  /** The thread serves requests. */
  join(index: number, link: WorkerLink): void {
    if (this.#links.get(index) !== link) this.enter(index, link)
    this.#serving.add(link)
  }

  /** The thread has ended. Ignored if another thread has replaced it. */
  part(index: number, link: WorkerLink): void {
    if (this.#links.get(index) !== link) return
    this.#links.delete(index)
    this.#serving.delete(link)
  }

  handleInMain<Name extends keyof Messages & string>(name: Name, handler: Handler<Messages, Name>): void {
    this.#handlers.add(name, handler)
  }

  async gather<Name extends keyof Messages & string>(
    name: Name,
    ...payload: Payload<Messages, Name>
  ): Promise<Gathered<Reply<Messages, Name>>> {
    return (await this.#gather(name, payload)) as Gathered<Reply<Messages, Name>>
  }

  async callMain<Name extends keyof Messages & string>(
    name: Name,
    ...payload: Payload<Messages, Name>
  ): Promise<Reply<Messages, Name>> {
    return (await this.#handlers.run(name, payload)) as Reply<Messages, Name>
  }

  async #gather(name: string, payload: readonly unknown[]): Promise<Gathered<unknown>> {
    const links = [...this.#links].sort(([one], [other]) => one - other).map(([, link]) => link)
    const calls = await Promise.allSettled(links.map((link) => link.send(REPLY_TIMEOUT_MS, name, payload)))
    const failures = calls.filter((call) => call.status === 'rejected')
    return {
      replies: calls.filter((call) => call.status === 'fulfilled').map(({ value }) => value),
      timedOut: failures.filter(({ reason }) => isThreadTimeout(reason)).length,
    }
  }
}

/** The bus in a thread that serves requests beside others: it has a link to the main thread. */
export class ThreadMember<Messages> implements ThreadGroup<Messages> {
  readonly index: number
  readonly count: number
  readonly #main: ThreadLink<ToMain, Messages>

  constructor(index: number, count: number, main: ThreadLink<ToMain, Messages>) {
    this.index = index
    this.count = count
    this.#main = main
  }

  handle<Name extends keyof Messages & string>(name: Name, handler: Handler<Messages, Name>): void {
    this.#main.handle(name, handler)
  }

  async gather<Name extends keyof Messages & string>(
    name: Name,
    ...payload: Payload<Messages, Name>
  ): Promise<Gathered<Reply<Messages, Name>>> {
    const gathered = await this.#main.call(2 * REPLY_TIMEOUT_MS, 'bus.gather', name, payload)
    return gathered as Gathered<Reply<Messages, Name>>
  }

  async callMain<Name extends keyof Messages & string>(
    name: Name,
    ...payload: Payload<Messages, Name>
  ): Promise<Reply<Messages, Name>> {
    return (await this.#main.call(2 * REPLY_TIMEOUT_MS, 'bus.callMain', name, payload)) as Reply<Messages, Name>
  }
}

/** The bus of a process with one thread, which serves requests and is the main thread. */
export class SingleThread<Messages> implements ThreadGroup<Messages>, MainThread<Messages> {
  readonly index = 0
  readonly count = 1
  readonly #own = new MessageHandlers<Messages>()
  readonly #main = new MessageHandlers<Messages>()

  handle<Name extends keyof Messages & string>(name: Name, handler: Handler<Messages, Name>): void {
    this.#own.add(name, handler)
  }

  handleInMain<Name extends keyof Messages & string>(name: Name, handler: Handler<Messages, Name>): void {
    this.#main.add(name, handler)
  }

  async gather<Name extends keyof Messages & string>(
    name: Name,
    ...payload: Payload<Messages, Name>
  ): Promise<Gathered<Reply<Messages, Name>>> {
    try {
      const reply = (await this.#own.run(name, payload)) as Reply<Messages, Name>
      return { replies: [reply], timedOut: 0 }
    } catch {
      return { replies: [], timedOut: 0 }
    }
  }

  async callMain<Name extends keyof Messages & string>(
    name: Name,
    ...payload: Payload<Messages, Name>
  ): Promise<Reply<Messages, Name>> {
    return (await this.#main.run(name, payload)) as Reply<Messages, Name>
  }
}
