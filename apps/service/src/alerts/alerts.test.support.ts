import type { IncomingHttpHeaders, Server, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { LogFields, Sleep } from '@sluice/runtime'
import { FakeClock, FakeTimers, START_MICROS } from '@sluice/testing'
import { onTestFinished } from 'vitest'
import type { WebhookDelivery } from './webhook-request.ts'
import { webhookDelivery } from './webhook-request.ts'

/** Where the time of every test begins. */
export const START_MS: number = START_MICROS / 1000

/** Webhooks that are not signed and may go anywhere. */
export const PLAIN_DELIVERY: WebhookDelivery = webhookDelivery({ secrets: [], deniedTargets: [] })

/** Time that passes when the test says so. */
export class TestTime {
  readonly #clock = new FakeClock()
  readonly #timers = new FakeTimers(this.#clock)
  /** Lengths of all waits so far. */
  readonly waits: number[] = []
  #onWait: () => void = () => undefined

  readonly nowMs = (): number => this.#clock.nowMicros() / 1000

  readonly sleep: Sleep = (delayMs, signal) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    if (signal?.aborted === true) return Promise.reject(signal.reason)
    const cancel = this.#timers.schedule(delayMs, resolve)
    signal?.addEventListener('abort', () => {
      cancel()
      reject(signal.reason)
    })
    this.waits.push(delayMs)
    this.#onWait()
    return promise
  }

  /** Number of pending waits. */
  get pending(): number {
    return this.#timers.pending
  }

  advance(ms: number): Promise<void> {
    return this.#timers.advance(ms)
  }

  /** Sets the clock, on or back; no wait ends by it. */
  setMs(ms: number): void {
    this.#clock.setMicros(ms * 1000)
  }

  /** Resolves when more than `before` waits of this length have begun. */
  async untilWait(delayMs: number, before = 0): Promise<void> {
    while (this.waits.filter((wait) => wait === delayMs).length <= before) {
      await new Promise<void>((resolve) => {
        this.#onWait = resolve
      })
    }
  }
}

/** What a receiver got. */
export interface Post {
  readonly method: string | undefined
  readonly path: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** Answers a post; `number` counts from 1. */
export type Reply = (response: ServerResponse, number: number) => void

/** A real HTTP server that gets webhooks. */
export class Receiver {
  readonly posts: Post[] = []
  readonly #server: Server
  #reply: Reply
  #onPost: () => void = () => undefined

  private constructor(reply: Reply) {
    this.#reply = reply
    this.#server = createServer(async (request, response) => {
      const chunks = await request.toArray()
      const { method, url: path, headers } = request
      this.posts.push({ method, path, headers, body: Buffer.concat(chunks).toString() })
      this.#reply(response, this.posts.length)
      this.#onPost()
    })
  }

  /** Listens until the end of the test. */
  static async start(reply: Reply): Promise<Receiver> {
    const receiver = new Receiver(reply)
    await new Promise<void>((resolve) => {
      receiver.#server.listen(0, '127.0.0.1', resolve)
    })
    onTestFinished(() => receiver.stop())
    return receiver
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Calls `told` for every connection, even one that sends nothing. */
  onConnection(told: () => void): void {
    this.#server.on('connection', told)
  }

  answerWith(reply: Reply): void {
    this.#reply = reply
  }

  /** Resolves when `count` posts have arrived. */
  async untilPosts(count: number): Promise<void> {
    while (this.posts.length < count) {
      await new Promise<void>((resolve) => {
        this.#onPost = resolve
      })
    }
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    if (this.#server.listening) await new Promise((resolve) => this.#server.close(resolve))
  }
}

/** A reply with a status and nothing else. */
export function status(code: number, headers: Readonly<Record<string, string>> = {}): Reply {
  return (response) => response.writeHead(code, headers).end()
}

/** A log that remembers its lines, each as its message. */
export class TestLog {
  readonly lines: { readonly level: string; readonly message: string; readonly fields: LogFields | undefined }[] = []

  debug(message: string, fields?: LogFields): void {
    this.lines.push({ level: 'debug', message, fields })
  }

  info(message: string, fields?: LogFields): void {
    this.lines.push({ level: 'info', message, fields })
  }

  warn(message: string, fields?: LogFields): void {
    this.lines.push({ level: 'warn', message, fields })
  }

  error(message: string, fields?: LogFields): void {
    this.lines.push({ level: 'error', message, fields })
  }

  get messages(): readonly string[] {
    return this.lines.map(({ message }) => message)
  }
}
