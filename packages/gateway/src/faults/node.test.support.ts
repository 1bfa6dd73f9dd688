import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Pool } from 'undici'
import { onTestFinished } from 'vitest'

/** What a process of a fault test is. */
export type NodeOrder =
  | { readonly kind: 'upstream'; readonly delayMs: number }
  | {
      readonly kind: 'gateway'
      readonly upstreams: readonly string[]
      readonly redisUrl: string
      readonly limit: number
      readonly failureMode: 'closed' | 'local'
    }

/** What it reports. */
export type NodeMessage = { readonly port: number } | { readonly received: string } | { readonly nodes: number }

/** A process of a fault test. It ends with the test. */
export class TestNode {
  /** Ids of requests in the order in which they arrived; of an upstream. */
  readonly received: string[] = []
  readonly origin: string
  readonly #child: ChildProcess
  readonly #exited: Promise<unknown>

  private constructor(child: ChildProcess, port: number) {
    this.origin = `http://127.0.0.1:${port}`
    this.#child = child
    this.#exited = once(child, 'exit')
    child.on('message', (message: NodeMessage) => {
      if ('received' in message) this.received.push(message.received)
    })
  }

  static async start(order: NodeOrder): Promise<TestNode> {
    const file = fileURLToPath(new URL('./node.test.child.ts', import.meta.url))
    const child = fork(file, [JSON.stringify(order)], { execArgv: ['--conditions=source'] })
    const failed = once(child, 'exit').then(([code]) => Promise.reject(new Error(`it ended with ${code}`)))
    // Later exits are what tests are about.
    failed.catch(() => undefined)
    const [message] = await Promise.race([once(child, 'message'), failed])
    const node = new TestNode(child, (message as { port: number }).port)
    onTestFinished(() => node.kill())
    return node
  }

  /** Gateways that this one knows to share Redis with, itself included. */
  async countNodes(): Promise<number> {
    const answered = once(this.#child, 'message')
    this.#child.send('nodes')
    const [message] = await answered
    return (message as { nodes: number }).nodes
  }

  /** Ends it at once, as `kill -9` does. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    if (this.#child.exitCode === null && this.#child.signalCode === null) await this.#exited
  }
}

/** How a request ended. */
export interface Answered {
  readonly id: string
  readonly method: 'GET' | 'POST'
  readonly origin: string
  /** 0: no response. */
  readonly status: number
}

/** A request that has not ended. */
export interface InFlight {
  readonly id: string
  readonly origin: string
}

export interface LoadOptions {
  readonly origins: readonly string[]
  readonly requests: number
  readonly concurrency: number
  /** Called before each request with how many have ended; what it returns is waited for by that request alone. */
  readonly onProgress?: (load: Load) => Promise<void> | undefined
  /** Default: GET. */
  readonly methodOf?: (index: number) => 'GET' | 'POST'
}

/** Load on gateways, each in turn. */
export class Load {
  /** Gateways that get requests. */
  readonly origins: string[]
  readonly answered: Answered[] = []
  readonly inFlight: Map<string, InFlight> = new Map()
  readonly #options: LoadOptions
  readonly #pools: ReadonlyMap<string, Pool>
  #sent = 0

  constructor(options: LoadOptions) {
    this.#options = options
    this.origins = [...options.origins]
    this.#pools = new Map(options.origins.map((origin) => [origin, new Pool(origin, { allowH2: false })]))
  }

  /** Resolves when all requests have ended. */
  async run(): Promise<readonly Answered[]> {
    await Promise.all(Array.from({ length: this.#options.concurrency }, () => this.#work()))
    await Promise.all(Array.from(this.#pools.values(), (pool) => pool.destroy()))
    return this.answered
  }

  async #work(): Promise<void> {
    const { requests, onProgress, methodOf = () => 'GET' } = this.#options
    while (this.#sent < requests) {
      const index = this.#sent++
      await onProgress?.(this)
      await this.#send(String(index), methodOf(index), this.origins[index % this.origins.length]!)
    }
  }

  async #send(id: string, method: 'GET' | 'POST', origin: string): Promise<void> {
    this.inFlight.set(id, { id, origin })
    const body = method === 'POST' ? 'order' : null
    let status = 0
    try {
      const answer = await this.#pools.get(origin)!.request({ path: '/orders', method, body, headers: { 'x-id': id } })
      await answer.body.text()
      status = answer.statusCode
    } catch {
      // No response: what a client of a dead process sees.
    }
    this.inFlight.delete(id)
    this.answered.push({ id, method, origin, status })
  }
}

/** Ids of requests with this status. */
export function idsWith(answered: readonly Answered[], status: number): string[] {
  return answered.filter((answer) => answer.status === status).map(({ id }) => id)
}
