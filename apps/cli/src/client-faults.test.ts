import type { Client, ClientOptions } from '@sluice/client'
import { createClient, isClientError, limitedFetch, retryFetch, serviceLimiter } from '@sluice/client'
import type { CheckAnswer, CheckRequest } from '@sluice/contract'
import { CHECK_PATH } from '@sluice/contract'
import { FaultyProxy, freePort } from '@sluice/testing/servers'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { ServiceProcess } from './service-process.test.support.ts'
import { startServiceProcess } from './service-process.test.support.ts'

// The client against the real service, which is killed, restarted, cut off and slowed down. No test waits for real.

const LIMIT = 5
const TIMEOUT_MS = 50_000

let service: ServiceProcess
let direct: Client

beforeAll(async () => {
  service = await startServiceProcess()
  direct = clientOf(service)
  await limitUsers(direct)
})

afterAll(() => service.close())

function clientOf({ url, adminKey }: ServiceProcess): Client {
  return createClient({ url, token: adminKey, retry: false })
}

/** Gives every user a few tokens that do not come back while the test runs. */
async function limitUsers(client: Client): Promise<void> {
  const rules = [{ dimension: 'user', algorithm: 'fixed-window' as const, limit: LIMIT, window: '1d' as const }]
  await client.call('putRateLimits', { body: { resource: '/x', rules } })
}

let users = 0

/** A check of a unique user. */
function freshCheck(tokens = 1): CheckRequest {
  users++
  return { userId: `user-${users}`, resource: '/x', tokens }
}

async function used(check: CheckRequest, client = direct): Promise<number> {
  return LIMIT - (await client.peek({ ...check, tokens: 0 })).remaining!
}

/** Time in which nothing passes but the waits between tries, and the time for an answer when the test says so. */
class Waits {
  readonly between: number[] = []
  readonly #onWait: (count: number) => Promise<void>
  #now = Date.UTC(2026, 0, 1)
  readonly #expire: (() => void)[] = []

  /** `onWait` is done in each wait between two tries, which is over with it. */
  constructor(onWait: (count: number) => Promise<void> = () => Promise.resolve()) {
    this.#onWait = onWait
  }

  get options(): Partial<ClientOptions> {
    return { timeoutMs: TIMEOUT_MS, random: () => 0.5, nowMs: () => this.#now, sleep: this.#sleep }
  }

  /** The time for every answer that is waited for is over. */
  expire(): void {
    for (const run of this.#expire.splice(0)) run()
  }

  readonly #sleep = async (ms: number): Promise<void> => {
    if (ms === TIMEOUT_MS) return await new Promise((resolve) => void this.#expire.push(resolve))
    this.between.push(ms)
    await this.#onWait(this.between.length)
    this.#now += ms
  }
}

async function startProxy(): Promise<FaultyProxy> {
  const proxy = await FaultyProxy.start({ port: service.port })
  onTestFinished(() => proxy.close())
  return proxy
}

function through(proxy: FaultyProxy, waits: Waits, options: Partial<ClientOptions> = {}): Client {
  return createClient({ url: `http://127.0.0.1:${proxy.port}`, ...waits.options, ...options })
}

async function codeOf(call: Promise<unknown>): Promise<unknown> {
  return await call.then(
    () => undefined,
    (error: unknown) => (isClientError(error) ? error.code : error),
  )
}

describe('a service that is killed', () => {
  it('is called again until it is back, and charges each check once', async () => {
    const port = await freePort()
    const first = await startServiceProcess('--port', String(port))
    onTestFinished(() => first.close())
    const waits = new Waits(async (count) => {
      if (count < 3) return
      const second = await startServiceProcess('--port', String(port))
      onTestFinished(() => second.close())
      await limitUsers(clientOf(second))
    })
    const client = createClient({ url: first.url, ...waits.options })
    expect(await client.check(freshCheck())).toMatchObject({ allowed: true })
    await first.close()
    const checks = [freshCheck(), freshCheck(2)]
    const answers = await Promise.all(checks.map((check) => client.check(check)))
    expect(answers.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
      [true, LIMIT - 1],
      [true, LIMIT - 2],
    ])
    expect(waits.between).toEqual([2000, 4000, 8000])
    expect(await Promise.all(checks.map((check) => used(check, client)))).toEqual([1, 2])
  })

  it('is replaced by the failure mode of the client', async () => {
    const killed = await startServiceProcess()
    await killed.close()
    const waits = new Waits()
    const client = createClient({ url: killed.url, failureMode: 'open', ...waits.options, retry: { maxRetries: 1 } })
    const failure = { mode: 'open', cause: 'unreachable', charged: 'no' }
    expect(await client.check(freshCheck())).toMatchObject({ allowed: true, failure })
    expect(await client.check(freshCheck(), { failureMode: 'closed' })).toMatchObject({
      allowed: false,
      reason: 'unavailable',
      failure: { ...failure, mode: 'closed' },
    })
    expect(await codeOf(client.check(freshCheck(), { failureMode: 'throw' }))).toBe('SLUICE_CLIENT_RETRIES_EXHAUSTED')
    expect(waits.between).toEqual([2000, 2000, 2000])
  })
})

describe('a network that refuses connections', () => {
  it('is tried again, and the check is charged once', async () => {
    const proxy = await startProxy()
    const waits = new Waits(() => proxy.passThrough())
    const client = through(proxy, waits)
    await proxy.refuse()
    const check = freshCheck()
    expect(await client.check(check)).toMatchObject({ allowed: true, remaining: LIMIT - 1 })
    expect(waits.between).toEqual([2000])
    expect(await used(check)).toBe(1)
  })
})

describe('a network that swallows everything', () => {
  it('ends with the time for the answer, and nothing was charged', async () => {
    const proxy = await startProxy()
    const waits = new Waits()
    const client = through(proxy, waits, { failureMode: 'closed' })
    await proxy.blackHole()
    const checks = [freshCheck(), freshCheck()]
    const answers = checks.map((check) => client.check(check))
    const controller = new AbortController()
    const ended = codeOf(client.check(freshCheck(), { signal: controller.signal }))
    controller.abort('enough')
    expect(await ended).toBe('enough')
    waits.expire()
    for (const answer of await Promise.all(answers)) {
      expect(answer).toMatchObject({ allowed: false, failure: { cause: 'deadline', charged: 'unknown' } })
    }
    expect(waits.between).toEqual([])
    expect(await Promise.all(checks.map((check) => used(check)))).toEqual([0, 0])
    await proxy.passThrough()
    expect(await client.check(checks[0]!)).toMatchObject({ allowed: true, remaining: LIMIT - 1 })
  })
})

describe('a network that loses answers', () => {
  it('is not asked a second time: a check that may have been charged is charged once', async () => {
    const proxy = await startProxy()
    const waits = new Waits()
    const client = through(proxy, waits, { failureMode: 'open' })
    await proxy.dropReplies()
    const check = freshCheck(2)
    const answer = client.check(check)
    while ((await used(check)) === 0);
    waits.expire()
    expect(await answer).toMatchObject({ allowed: true, failure: { cause: 'deadline', charged: 'unknown' } })
    expect(waits.between).toEqual([])
    expect(await used(check)).toBe(2)
  })

  it('breaks during a response: what charges nothing is retried, and a check is not', async () => {
    const proxy = await startProxy()
    const waits = new Waits()
    const client = through(proxy, waits)
    const check = freshCheck()
    proxy.resetMidReply(20)
    expect(await codeOf(client.check(check))).toBe('SLUICE_CLIENT_UNREACHABLE')
    expect(waits.between).toEqual([])
    expect(await used(check)).toBe(1)
    proxy.resetMidReply(20)
    expect(await client.peek(check)).toMatchObject({ allowed: true, remaining: LIMIT - 1 })
    proxy.resetMidReply(20)
    expect(await client.check({ ...check, tokens: 0 })).toMatchObject({ allowed: true, remaining: LIMIT - 1 })
    expect(waits.between).toEqual([2000, 2000])
    expect(await used(check)).toBe(1)
  })
})

describe('a network that is slow', () => {
  it('does not change a single answer', async () => {
    const proxy = await startProxy()
    const client = through(proxy, new Waits())
    proxy.delay(30)
    const check = freshCheck()
    const answers = await Promise.all(Array.from({ length: 250 }, () => client.check(check)))
    expect(answers.filter(({ allowed }) => allowed)).toHaveLength(LIMIT)
    expect(await used(check)).toBe(LIMIT)
    // 250 checks of one turn are three batches, which go at the same time.
    expect(proxy.totals.connections).toBe(3)
  })
})

describe('checks of one turn', () => {
  it('are answered by the service as if they came one by one', async () => {
    const together = createClient({ url: service.url })
    const apart = createClient({ url: service.url, batch: false })
    const part = fc.record({ user: fc.nat(2), tokens: fc.constantFrom(0, 1, 1, 2, 3, 6, -1, 0.5) })
    const shown = (outcome: PromiseSettledResult<CheckAnswer>): unknown => {
      if (outcome.status === 'rejected') return outcome.reason.errors
      // Time goes on between one way and the other: what is counted in seconds from now may be one less.
      const { decisionId, retryAfter, ...answer } = outcome.value
      return { ...answer, isNamed: decisionId !== undefined, mustWait: Number(retryAfter) > 0 }
    }
    let run = 0
    const checksOf = (parts: readonly { user: number; tokens: number }[]): CheckRequest[] => {
      run++
      return parts.map(({ user, tokens }) => ({ userId: `run-${run}-${user}`, resource: '/x', tokens }))
    }
    await fc.assert(
      fc.asyncProperty(fc.array(part, { minLength: 2, maxLength: 20 }), async (parts) => {
        const batched = await Promise.allSettled(checksOf(parts).map((check) => together.check(check)))
        const single: PromiseSettledResult<CheckAnswer>[] = []
        for (const check of checksOf(parts)) single.push(...(await Promise.allSettled([apart.check(check)])))
        expect(batched.map(shown)).toEqual(single.map(shown))
      }),
      { numRuns: 40 },
    )
  })
})

describe('what calls any API', () => {
  const post = (check: CheckRequest): RequestInit => ({
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(check),
  })

  it('waits as long as the headers of the service say, and comes back', async () => {
    const check = freshCheck(LIMIT)
    const waits = new Waits(async () => void (await direct.call('reset', { body: { userId: check.userId! } })))
    const seen: number[] = []
    const { random, nowMs, sleep } = waits.options
    const send = retryFetch({
      random,
      nowMs,
      sleep,
      repeat: 'refused',
      maxWaitMs: Number.POSITIVE_INFINITY,
      onRetry: ({ status }) => void seen.push(status!),
    })
    expect((await send(service.url + CHECK_PATH, post(check))).status).toBe(200)
    const denied = await fetch(service.url + CHECK_PATH, post(check))
    const announcedSeconds = Number(denied.headers.get('retry-after'))
    expect((await send(service.url + CHECK_PATH, post(check))).status).toBe(200)
    expect(seen).toEqual([429])
    // The day goes on between the two denials.
    expect(announcedSeconds - waits.between[0]! / 1000).toBeLessThanOrEqual(1)
    expect(announcedSeconds - waits.between[0]! / 1000).toBeGreaterThanOrEqual(0)
  })

  it('waits for its turn by the limits of the service', async () => {
    const { userId } = freshCheck()
    const waits = new Waits(async () => void (await direct.call('reset', { body: { userId: userId! } })))
    const { sleep, nowMs } = waits.options
    const request = (_: string, tokens: number): CheckRequest => ({ userId: userId!, resource: '/x', tokens })
    const limiter = serviceLimiter({ client: direct, request, sleep, nowMs })
    const send = limitedFetch({ limiter, cost: 2 })
    const statuses: number[] = []
    for (let call = 0; call < 3; call++) statuses.push((await send(`${service.url}/livez`)).status)
    expect(statuses).toEqual([200, 200, 200])
    // Two take four of five tokens; the third waited until they were back.
    expect(waits.between).toHaveLength(1)
    expect(await used({ userId: userId!, resource: '/x' })).toBe(2)
  })
})
