import type { HeaderProfile, Operation, OperationId, ProblemDocument } from '@sluice/contract'
import { OPERATIONS, SCHEMAS } from '@sluice/contract'
import type { Store, Timers } from '@sluice/core'
import type { RuleSet } from '@sluice/core/policy'
import { PolicyEngine } from '@sluice/core/policy'
import type { Mode } from '@sluice/core/store'
import { FakeClock, seededRandom } from '@sluice/testing'
import { expect } from 'vitest'
import type { ServiceMessages } from '../../service-context.ts'
import type { ThreadGroup } from '../../thread-messages/message-bus.ts'
import { SingleThread } from '../../thread-messages/message-bus.ts'
import type { RawCall } from '../decoded-calls.test.support.ts'
import { DecodedCalls } from '../decoded-calls.test.support.ts'
import type { OperationHandlers, Reply } from '../handler.ts'
import type { CheckOperation } from './check-handlers.ts'
import { checkHandlers } from './check-handlers.ts'

// What the tests of the check API share: a set of handlers over a store, with time in the hands of the test.

/** What a test may say about the handlers. */
export interface CheckApiOptions {
  readonly store: Store
  readonly clock: FakeClock
  readonly ruleSet?: RuleSet
  readonly headers?: HeaderProfile
  readonly retryJitter?: number
  readonly random?: () => number
  readonly region?: string
  readonly secret?: Uint8Array
  /** Default: nothing waits. */
  readonly timers?: Timers
  readonly maxWaiting?: number
  readonly threads?: ThreadGroup<ServiceMessages>
  /** Default: numbers from 1 on. */
  readonly nextId?: () => string | undefined
  /** Default: true. */
  readonly hasRules?: boolean
}

/** An answer, read. */
export interface ReadAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** The parsed body: whatever the operation answers with. */
  readonly body: Readonly<Record<string, unknown>>
}

const NO_TIMERS: Timers = {
  schedule: () => {
    throw new Error('Nothing waits here.')
  },
}

/** The ids of operations by their paths. */
const BY_PATH: ReadonlyMap<string, CheckOperation> = new Map(
  Object.values<Operation>(OPERATIONS).map(({ path, id }) => [path, id as CheckOperation]),
)

const SECRET: Uint8Array = new Uint8Array(32).fill(7)

/** Handlers, and how a test asks them. */
export class CheckApi {
  readonly engine: PolicyEngine
  readonly handlers: OperationHandlers<CheckOperation>
  readonly #calls: DecodedCalls

  constructor(options: CheckApiOptions) {
    const { store, clock, ruleSet, headers = 'legacy', retryJitter = 0, region, secret = SECRET } = options
    const { threads = new SingleThread(), nextId = counting() } = options
    const { timers = NO_TIMERS, maxWaiting = 1000 } = options
    const random = seededRandom(clock.nowMicros() % 1000)
    const ofRules = ruleSet === undefined ? {} : { ruleSet }
    this.engine = new PolicyEngine<Mode>({ store, clock, random, timers, maxWaiting, ...ofRules })
    this.handlers = checkHandlers({
      settings: { headers, retryJitter, region },
      clock,
      random: options.random ?? (() => 0.5),
      store,
      engine: this.engine,
      threads,
      secret,
      nextId,
      follower: { hasRules: options.hasRules ?? true },
    })
    this.#calls = new DecodedCalls(this.handlers)
  }

  /** What comes of a request, as it is. */
  call(id: CheckOperation, raw: RawCall): Reply | Promise<Reply> {
    return this.#calls.call(id, raw)
  }

  /** Asks an operation below `/internal/ratelimit/`. */
  async post(name: string, body: unknown, signal?: AbortSignal): Promise<ReadAnswer> {
    const id = BY_PATH.get(`/internal/ratelimit/${name}`)
    if (id === undefined) throw new Error(`there is no operation ${name}`)
    return readAnswer(id, await this.call(id, { body, ...(signal === undefined ? {} : { signal }) }))
  }

  /** Asks as Envoy does. */
  async envoy(body: unknown): Promise<ReadAnswer> {
    return readAnswer('shouldRateLimit', await this.call('shouldRateLimit', { body }))
  }

  /** Checks a call `times` times. Returns how many were allowed. */
  async admitted(times: number, body: unknown): Promise<number> {
    let count = 0
    for (let call = 0; call < times; call++) if ((await this.post('check', body)).status === 200) count++
    return count
  }

  /** What is left for a call, without taking anything. */
  async remaining(body: object): Promise<unknown> {
    return (await this.post('peek', { ...body, tokens: 0 })).body['remaining']
  }

  async ids(query: string): Promise<ReadAnswer> {
    return readAnswer('ids', await this.call('ids', { query }))
  }
}

/** The numbers from 1 on. */
function counting(): () => string {
  let last = 0
  return () => String(++last)
}

/** Reads an answer, and holds it against what the table of operations says that clients must be ready for. */
export function readAnswer(id: OperationId, answer: Reply): ReadAnswer {
  if (!('body' in answer)) throw new Error('It streams.')
  const { status, headers } = answer
  const declared = (OPERATIONS[id] as Operation).answers[status]
  if (declared === undefined) throw new Error(`${id} answers with ${status}, which its operation does not say`)
  const body = JSON.parse(answer.body) as Readonly<Record<string, unknown>>
  expect(headers['Content-Length']).toBe(String(Buffer.byteLength(answer.body)))
  expect(headers['Content-Type']).toBe(declared.mediaType ?? 'application/json')
  if (declared.problems !== undefined) expect(declared.problems).toContain(body['code'])
  const { 'Content-Type': _type, 'Content-Length': _length, ...said } = headers
  const { $ref = '' } = declared.schema ?? {}
  const promised = SCHEMAS[$ref.slice($ref.lastIndexOf('/') + 1)]?.properties ?? {}
  expect(Object.keys(promised)).toEqual(expect.arrayContaining(Object.keys(body)))
  for (const name of Object.keys(said)) expect(declared.headers ?? []).toContain(name)
  return { status, headers: said, body }
}

/** The paths of what is wrong, as a problem tells it. */
export function wrongPaths({ body }: ReadAnswer): readonly string[] {
  return ((body as unknown as ProblemDocument).errors ?? []).map(({ path }) => path)
}

/** Opens an empty store on a clock, for a test. */
export type OpenStore = (clock: FakeClock) => Store | Promise<Store>

/** What a test of the suite works with. */
export interface CheckScene {
  readonly clock: FakeClock
  readonly store: Store
  /** Handlers over the store; those of another process with a second call. */
  api(options?: Partial<Omit<CheckApiOptions, 'store' | 'clock'>>): CheckApi
}

/** Opens a store, runs something on it, and closes it again. */
export async function withStore(open: OpenStore, run: (scene: CheckScene) => Promise<void>): Promise<void> {
  const clock = new FakeClock()
  const store = await open(clock)
  try {
    await run({ clock, store, api: (options = {}) => new CheckApi({ store, clock, ...options }) })
  } finally {
    await store.close()
  }
}

/** Rule sets for tests: `limit` per minute for each user on `/orders`. */
export function perUser(limit: number): RuleSet {
  return { rules: [{ resource: '/orders', dimension: 'user', algorithm: 'fixed-window', limit, window: '1m' }] }
}
