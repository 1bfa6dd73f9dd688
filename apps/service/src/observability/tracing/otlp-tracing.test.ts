import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { RuleSet } from '@sluice/core/policy'
import { FakeClock } from '@sluice/testing'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { RequestObserver } from '../../listeners/http/request-observer.ts'
import { jsonAnswer } from '../../operations/handler.ts'
import { captureLog, createScene, observedHandlers, requestOf, SECRET } from '../observability.test.support.ts'
import { OtlpTracing } from './otlp-tracing.ts'

// The libraries import `node:process`, which opens the standard input. It keeps no process alive, but is there.
afterAll(() => void process.stdin.unref())

interface OtlpSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[]
  readonly status: { readonly code?: number }
  readonly traceState?: string
}

interface OtlpBody {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: OtlpSpan['attributes'] }
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[]
  }[]
}

/** A collector that takes spans by HTTP, as JSON. */
async function startCollector(status = 200) {
  const bodies: OtlpBody[] = []
  const requests: string[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      requests.push(`${request.method} ${request.url} ${request.headers['content-type']}`)
      bodies.push(JSON.parse(Buffer.concat(chunks).toString()) as OtlpBody)
      response.writeHead(status, { 'Content-Type': 'application/json' }).end('{}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const spans = (): readonly OtlpSpan[] =>
    bodies.flatMap(({ resourceSpans }) =>
      resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans)),
    )
  return { endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, bodies, requests, spans }
}

function attributesOf(span: OtlpSpan): Readonly<Record<string, unknown>> {
  return Object.fromEntries(span.attributes.map(({ key, value }) => [key, Object.values(value)[0]]))
}

const RULES: RuleSet = { rules: [{ name: 'per-user', resource: '/data', dimension: 'user', limit: 1, window: '1m' }] }

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT = '00f067aa0ba902b7'
const TRACEPARENT = `00-${TRACE}-${PARENT}-01`

async function tracedScene(endpoint: string, mostPerSecond?: number) {
  const clock = new FakeClock()
  const log = captureLog(clock)
  let stopwatch = 0
  const tracing = new OtlpTracing({
    endpoint,
    clock,
    monotonicMs: () => stopwatch,
    log: log.logger,
    ...(mostPerSecond === undefined ? {} : { mostPerSecond }),
  })
  await tracing.start()
  onTestFinished(() => tracing.close())
  const scene = createScene({ ruleSet: RULES, tracer: tracing })
  const outgoing: Readonly<Record<string, string>>[] = []
  const observer = new RequestObserver({
    metrics: scene.metrics,
    log: log.logger,
    monotonicMs: () => stopwatch,
    secret: SECRET,
    tracing,
  })
  const handlers = observedHandlers(observer, {
    'POST /internal/ratelimit/check': () => {
      const { allowed } = scene.engine.check({ resource: '/data', user: 'ann' })
      stopwatch += 2.5
      return jsonAnswer(allowed ? 200 : 429, '{}')
    },
    'POST /later': async () => {
      await undefined
      scene.engine.check({ resource: '/data', user: 'bob' })
      outgoing.push(tracing.outgoingHeaders())
      return jsonAnswer(503, '{}')
    },
    'POST /broken': () => {
      throw new Error('ann')
    },
  })
  const call = (operation: string, headers: Readonly<Record<string, string>> = {}) =>
    handlers[operation]!(requestOf({ headers }))
  return { tracing, call, outgoing, clock, log }
}

describe('OtlpTracing', () => {
  it('sends the span of a request and that of its decision, below the span of the caller', async () => {
    const collector = await startCollector()
    const { tracing, call, clock } = await tracedScene(`${collector.endpoint}/`)
    const start = BigInt(clock.nowMicros()) * 1000n
    call('POST /internal/ratelimit/check', { traceparent: TRACEPARENT, tracestate: 'vendor=x' })
    await tracing.close()
    expect(collector.requests).toEqual(['POST /v1/traces application/json'])
    const [decision, request] = collector.spans()
    expect(request).toMatchObject({
      traceId: TRACE,
      parentSpanId: PARENT,
      name: 'POST /internal/ratelimit/check',
      kind: 2,
      startTimeUnixNano: String(start),
      endTimeUnixNano: String(start + 2_500_000n),
    })
    expect(attributesOf(request!)).toEqual({
      'http.request.method': 'POST',
      'http.route': '/internal/ratelimit/check',
      'http.response.status_code': 200,
    })
    expect(decision).toMatchObject({ traceId: TRACE, parentSpanId: request!.spanId, name: 'ratelimit.check' })
    expect(attributesOf(decision!)).toEqual({
      'ratelimit.allowed': true,
      'ratelimit.reason': 'allowed',
      'ratelimit.rule': 'per-user',
      'ratelimit.dimension': 'user',
      'ratelimit.version': 0,
    })
    // The stopwatch of the engine moves on by 1 ms at each look.
    expect(BigInt(decision!.endTimeUnixNano) - BigInt(decision!.startTimeUnixNano)).toBe(1_000_000n)
    const [resource] = collector.bodies.flatMap(({ resourceSpans }) => resourceSpans.map((one) => one.resource))
    expect(attributesOf(resource as unknown as OtlpSpan)['service.name']).toBe('sluice')
  })

  it('begins a trace for an outgoing request without an incoming one, and propagates it', async () => {
    const collector = await startCollector()
    const { tracing } = await tracedScene(collector.endpoint)
    const [sent, lost] = [tracing.beginAsking('POST webhook'), tracing.beginAsking('POST webhook')]
    const { traceparent = '' } = sent.run(() => tracing.outgoingHeaders())
    sent.end(204)
    lost.end(0)
    await tracing.close()
    const [first, second] = collector.spans()
    expect(first).toMatchObject({ name: 'POST webhook', kind: 3 })
    expect(traceparent).toBe(`00-${first!.traceId}-${first!.spanId}-01`)
    expect(first!.parentSpanId ?? '').toBe('')
    expect(attributesOf(first!)).toEqual({ 'http.request.method': 'POST', 'http.response.status_code': 204 })
    expect(second!.traceId).not.toBe(first!.traceId)
    expect(attributesOf(second!)).toEqual({ 'http.request.method': 'POST' })
  })

  it('propagates the trace to outgoing requests, even when the response comes later', async () => {
    const collector = await startCollector()
    const { tracing, call, outgoing } = await tracedScene(collector.endpoint)
    expect(tracing.outgoingHeaders()).toEqual({})
    await Promise.all([
      call('POST /later', { traceparent: TRACEPARENT, tracestate: 'vendor=x,other=y' }),
      call('POST /later', { traceparent: 'nonsense' }),
    ])
    await tracing.close()
    const requests = collector.spans().filter(({ kind }) => kind === 2)
    const followed = requests.find(({ traceId }) => traceId === TRACE)!
    const begun = requests.find(({ traceId }) => traceId !== TRACE)!
    expect(outgoing).toEqual([
      { traceparent: `00-${TRACE}-${followed.spanId}-01`, tracestate: 'vendor=x,other=y' },
      { traceparent: `00-${begun.traceId}-${begun.spanId}-01` },
    ])
    expect(begun.parentSpanId ?? '').toBe('')
    // Each decision stands below its own request.
    const parents = collector.spans().filter(({ kind }) => kind !== 2)
    expect(parents.map(({ parentSpanId }) => parentSpanId)).toEqual([followed.spanId, begun.spanId])
    expect(followed.status.code).toBe(2)
  })

  it('says of a request that failed only that it did', async () => {
    const collector = await startCollector()
    const { tracing, call } = await tracedScene(collector.endpoint)
    expect(() => call('POST /broken')).toThrow('ann')
    await tracing.close()
    const [span] = collector.spans()
    expect(attributesOf(span!)['http.response.status_code']).toBe(500)
    expect(span!.status).toEqual({ code: 2 })
    expect(JSON.stringify(collector.bodies)).not.toContain('ann')
  })

  it('does not record what the caller does not, and hands that on', async () => {
    const collector = await startCollector()
    const { tracing, call, outgoing } = await tracedScene(collector.endpoint)
    await call('POST /later', { traceparent: `00-${TRACE}-${PARENT}-00` })
    await tracing.close()
    expect(collector.spans()).toEqual([])
    expect(outgoing[0]!['traceparent']).toMatch(new RegExp(`^00-${TRACE}-[0-9a-f]{16}-00$`))
  })

  it('records at most the maximum number of requests per second, whatever callers request', async () => {
    const collector = await startCollector()
    const { tracing, call, clock } = await tracedScene(collector.endpoint, 3)
    for (let number = 0; number < 10; number++) call('POST /internal/ratelimit/check', { traceparent: TRACEPARENT })
    clock.advance(1000)
    for (let number = 0; number < 2; number++) call('POST /internal/ratelimit/check')
    await tracing.close()
    expect(collector.spans().filter(({ kind }) => kind === 2)).toHaveLength(5)
    expect(collector.spans().filter(({ kind }) => kind !== 2)).toHaveLength(5)
  })

  it('answers without a collector, and says so once', async () => {
    const collector = await startCollector(400)
    const { tracing, call, log } = await tracedScene(collector.endpoint)
    const answer = call('POST /internal/ratelimit/check')
    expect(answer).toMatchObject({ status: 200 })
    await tracing.close()
    const lines = log.entries().filter(({ level }) => level === 'warn')
    expect(lines).toMatchObject([{ message: 'could not deliver traces; they are dropped' }])
  })

  it('records nothing before it is started, nor after it has ended', async () => {
    const clock = new FakeClock()
    const log = captureLog(clock)
    const collector = await startCollector()
    const tracing = new OtlpTracing({ endpoint: collector.endpoint, clock, monotonicMs: () => 0, log: log.logger })
    const span = tracing.begin('GET /x', {})
    expect(span.run(() => tracing.outgoingHeaders())).toEqual({})
    span.end(200)
    await tracing.close()
    expect(collector.requests).toEqual([])
  })
})
