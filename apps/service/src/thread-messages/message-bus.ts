import type { Handler, Payload, Reply, ThreadLink } from './thread-link.ts'
import { isThreadTimeout, MessageHandlers } from './thread-link.ts'

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
