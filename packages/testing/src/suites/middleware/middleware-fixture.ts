import http from 'node:http'
import type { Clock, Duration, Rule, Store, Timers } from '@sluice/core'
import { onTestFinished } from 'vitest'

/** What the options of the suite see of a request. */
export interface SuiteRequest {
  readonly method: string
  /** Path and query. */
  readonly url: string
  header(name: string): string | readonly string[] | undefined
}

type MaybePromise<T> = T | Promise<T>
type Ask<T> = (context: unknown, request: SuiteRequest) => MaybePromise<T>

/**
 * The options of a limiter that the suite uses, for whichever framework: none of them looks at the framework's own
 * objects.
 */
export interface SuiteOptions {
  readonly algorithm?: 'gcra' | 'fixed-window' | 'concurrency' | 'leaky-bucket-queue'
  readonly limit?: number
  readonly window?: Duration
  readonly lease?: Duration
  readonly capacity?: number
  readonly ratePerSecond?: number
  readonly rules?: Readonly<Record<string, Rule & { readonly key?: Ask<string | undefined> }>>
  readonly name?: string
  readonly store?: Store
  readonly clock?: Clock
  readonly timers?: Timers
  readonly key?: Ask<string | undefined>
  readonly cost?: number | Ask<number>
  readonly actualCost?: (context: unknown, status: number) => number | undefined
  readonly refund?: readonly number[]
  readonly skip?: Ask<boolean>
  readonly shadow?: boolean
  readonly headers?: 'legacy' | 'draft-11' | 'both' | 'off'
  readonly status?: number
  readonly onDecision?: (decision: SuiteDecision) => void
  readonly warn?: (warning: unknown) => void
}

/** What the suite looks at in a decision. */
export interface SuiteDecision {
  readonly allowed: boolean
  readonly rule: string
  readonly remaining: number | null
}

/** A request that got through to a handler. */
export interface SuiteCall {
  /** One of {@link SUITE_PATHS}. */
  readonly path: string
  /** The decision, from where handlers of the framework find it; undefined when there was none. */
  readonly decision: SuiteDecision | undefined
}

/** What a handler answers with. */
export interface SuiteAnswer {
  readonly status: number
  /** Pieces are sent as they come. */
  readonly body: string | AsyncIterable<string>
}

/** Where handlers are. */
export const SUITE_PATHS = ['/ok', '/fail', '/slow', '/stream'] as const

/** An app to be served by the framework. */
export interface ServedApp {
  /** Of the limiters that every request passes, in this order. */
  readonly limiters: readonly SuiteOptions[]
  /** When given, it answers denials of the first limiter, by the framework's `onLimited`. */
  readonly onLimited?: (denial: { readonly status: number; readonly body: string }) => SuiteAnswer
  /**
   * Answers GET (and so HEAD) and OPTIONS requests for {@link SUITE_PATHS}. When it rejects, that goes to the error
   * handling of the framework, which answers with 500.
   */
  handle(call: SuiteCall): Promise<SuiteAnswer>
}

/** An app that is being served. */
export interface RunningApp {
  /** Such as `http://127.0.0.1:4711`. */
  readonly url: string
  /** Closes the limiters, and goes on serving. */
  closeLimiters(): Promise<void>
  /** Closes the server and the limiters. */
  close(): Promise<void>
}

/** Something that a framework cannot do: have several limiters before one handler. */
export type MiddlewareCapability = 'several-limiters'

/** How {@link middlewareSuite} gets at a framework. */
export interface MiddlewareHarness {
  /** Serves an app by the real framework, on a free port of 127.0.0.1. */
  serve(app: ServedApp): Promise<RunningApp>
  /** What it cannot do, with the reason for each. Tests that need it are skipped and say so. */
  readonly lacks?: Partial<Readonly<Record<MiddlewareCapability, string>>>
}

/** An answer as a client gets it. */
export interface Received {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly body: string
}

/** A request in flight. */
export interface InFlightRequest {
  readonly answer: Promise<Received>
  /** Resolves with the first piece of the body. */
  readonly firstPiece: Promise<string>
  /** Closes the connection. */
  hangUp(): void
}

/** How to ask. */
export interface SendOptions {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** A served app, with a client, and what its handlers were called for. */
export class MiddlewareFixture {
  readonly calls: SuiteCall[] = []
  readonly app: RunningApp
  readonly #agent: http.Agent

  constructor(app: RunningApp, agent: http.Agent, calls: SuiteCall[]) {
    this.app = app
    this.#agent = agent
    this.calls = calls
  }

  /** Sends a request, and resolves with its answer. */
  get(path: string, options?: SendOptions): Promise<Received> {
    return this.send(path, options).answer
  }

  /** Sends a request. */
  send(path: string, { method = 'GET', headers = {} }: SendOptions = {}): InFlightRequest {
    const first = Promise.withResolvers<string>()
    const { promise, resolve, reject } = Promise.withResolvers<Received>()
    const request = http.request(`${this.app.url}${path}`, { method, headers, agent: this.#agent }, (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (piece: string) => {
        body += piece
        first.resolve(piece)
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }))
      response.on('error', reject)
    })
    request.on('error', reject)
    request.end()
    // Who hangs up does not wait for an answer.
    promise.catch(() => undefined)
    return { answer: promise, firstPiece: first.promise, hangUp: () => void request.destroy() }
  }
}

/** What else a fixture is made of. */
export interface FixtureOptions extends Partial<Pick<ServedApp, 'onLimited' | 'handle'>> {
  readonly limiters: readonly SuiteOptions[]
}

/**
 * Serves an app until the test is over. Handlers answer `200 ok`, or at `/fail` with 500, when nothing else is said.
 */
export async function openFixture(
  harness: MiddlewareHarness,
  { limiters, ...parts }: FixtureOptions,
): Promise<MiddlewareFixture> {
  const { handle = usualHandler, onLimited } = parts
  const calls: SuiteCall[] = []
  const app = await harness.serve({
    // The suite may use a limiter in ways that deserve a warning.
    limiters: limiters.map((options) => ({ warn: () => undefined, ...options })),
    ...(onLimited === undefined ? {} : { onLimited }),
    handle: (call) => {
      calls.push(call)
      return handle(call)
    },
  })
  const agent = new http.Agent({ keepAlive: true, maxSockets: 50 })
  onTestFinished(async () => {
    agent.destroy()
    await app.close()
  })
  return new MiddlewareFixture(app, agent, calls)
}

function usualHandler({ path }: SuiteCall): Promise<SuiteAnswer> {
  return Promise.resolve(path === '/fail' ? { status: 500, body: 'failed' } : { status: 200, body: 'ok' })
}

/** A gate for tests: each {@link passed} resolves for one {@link pass}. */
export class Turnstile {
  readonly #waiting: (() => void)[] = []
  #passes = 0

  /** Lets one through, now or when it comes. */
  readonly pass = (): void => {
    const next = this.#waiting.shift()
    if (next === undefined) this.#passes++
    else next()
  }

  /** Resolves for the next {@link pass} that no call has waited for. */
  passed(): Promise<void> {
    if (this.#passes === 0) return new Promise((resolve) => void this.#waiting.push(resolve))
    this.#passes--
    return Promise.resolve()
  }
}

/** A store that tells when a charge has been settled. */
export function watchedStore(store: Store<'sync'>): { readonly store: Store<'sync'>; readonly settled: Turnstile } {
  const settled = new Turnstile()
  const watched: Store<'sync'> = {
    mode: 'sync',
    decide: (batch) => store.decide(batch),
    settle(receipt, actuals) {
      const settlement = store.settle(receipt, actuals)
      settled.pass()
      return settlement
    },
    block: (rule, key, term) => store.block(rule, key, term),
    reset: (limits, key) => store.reset(limits, key),
    close: () => store.close(),
  }
  return { store: watched, settled }
}
