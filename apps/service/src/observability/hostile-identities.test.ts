import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { PolicyRequest, RuleSet } from '@sluice/core/policy'
import { HOSTILE_KEYS } from '@sluice/testing'
import fc from 'fast-check'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import { RequestObserver } from '../listeners/http/request-observer.ts'
import type { Answer } from '../operations/handler.ts'
import { jsonAnswer } from '../operations/handler.ts'
import { StreamLimit } from '../operations/monitoring/event-feed.ts'
import { figuresOf } from '../operations/monitoring/feed-readers.ts'
import { liveFeed } from '../operations/monitoring/live-feed.ts'
import { observabilityHandlers } from '../operations/monitoring/metrics.ts'
import { errorFields } from './error-fields.ts'
import { HOUR_MS, MINUTE_MS, RollupRecorder } from './history/rollup-recorder.ts'
import { askReport } from './metrics-aggregator.ts'
import {
  createScene,
  createSceneNode,
  MemoryRollups,
  observedHandlers,
  parseMetricsPage,
  requestOf,
  SECRET,
} from './observability.test.support.ts'
import { OtlpTracing } from './tracing/otlp-tracing.ts'

// Callers appear in no log line, no metric label, no span and no row of history, whatever they call
// themselves.

// The libraries import `node:process`, which opens the standard input. It keeps no process alive, but is there.
afterAll(() => void process.stdin.unref())

/** In every identity that is sent, and nowhere else; no way of writing a string changes it. */
const MARK = 'Zq9Xw7Vu'

const RULES: RuleSet = {
  rules: [
    { resource: '/login', dimension: 'ip', limit: 2, window: '1m', penalty: { after: 2, within: '1m', block: '1m' } },
    {
      resource: '/data/*',
      dimension: 'user',
      limit: 2,
      window: '1m',
      penalty: { after: 3, within: '1m', block: '1m' },
    },
    { resource: '/data/*', dimension: 'apiKey', limit: 3, window: '1m' },
    { resource: '/data/*', dimension: 'tenant+plan', limit: 3, window: '1m' },
    { resource: '*', dimension: 'tenant', limit: 1, window: '1m', shadow: true },
    { resource: '*', dimension: 'global', limit: 1000, window: '1m' },
  ],
  denyList: [{ name: 'no-bots', match: { dimension: 'user', entities: [`${MARK}-bot`] } }],
  domains: [
    { domain: 'shop', descriptors: [{ key: 'k', limit: { unit: 'minute', requestsPerUnit: 1 }, valueToMetric: true }] },
  ],
}

const texts = fc
  .tuple(fc.oneof(fc.constantFrom(...HOSTILE_KEYS), fc.string({ unit: 'binary', maxLength: 20 })), fc.boolean())
  .map(([text, first]) => (first ? `${MARK}${text}` : `${text}${MARK}`))

const addresses = fc.constantFrom(
  '203.0.113.77',
  '2001:db8:dead:beef::77',
  '::ffff:203.0.113.77',
  `${MARK}.9`,
  `${MARK}:1`,
)

const requests: fc.Arbitrary<PolicyRequest> = fc.record({
  resource: fc.oneof(
    fc.constantFrom('/login', '/data/1'),
    texts.map((text) => `/data/${text}`),
    texts.map((text) => text.replaceAll('/', '') || 'x'),
  ),
  method: texts,
  user: fc.oneof(texts, fc.constant(`${MARK}-bot`), fc.constant(MARK), fc.constant(`${MARK}${'x'.repeat(5000)}`)),
  ip: addresses,
  apiKey: texts,
  tenant: texts,
  tier: texts,
  service: texts,
  descriptors: fc.record({ plan: texts, [`${MARK}-name`]: texts }),
})

async function startCollector(): Promise<{ readonly endpoint: string; readonly bodies: string[] }> {
  const bodies: string[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text
    })
    request.on('end', () => {
      bodies.push(body)
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, bodies }
}

/** Everything that observes, put together. */
async function wholeScene() {
  const { endpoint, bodies } = await startCollector()
  const late: { tracing?: OtlpTracing } = {}
  const tracer = {
    begin: (...args: Parameters<OtlpTracing['begin']>) => late.tracing!.begin(...args),
    decided: (...args: Parameters<OtlpTracing['decided']>) => late.tracing!.decided(...args),
    beginAsking: (operation: string) => late.tracing!.beginAsking(operation),
    outgoingHeaders: () => late.tracing!.outgoingHeaders(),
  }
  const scene = createScene({ ruleSet: RULES, tracer })
  const { clock, sleep, log, metrics, engine, monotonicMs } = scene
  const tracing = new OtlpTracing({ endpoint, clock, monotonicMs, log: log.logger, mostPerSecond: 1_000_000 })
  late.tracing = tracing
  await tracing.start()
  const { threads } = createSceneNode(scene)
  const report = () => askReport(threads)
  const rollups = new MemoryRollups()
  const recorder = new RollupRecorder({ store: rollups, report, clock, sleep, log: log.logger, source: 'only' })
  recorder.start()
  const shown = observabilityHandlers(
    { clock, sleep, log: log.logger, threads },
    { rollups, alertBounds: {}, keys: { find: () => undefined } },
  )
  const observer = new RequestObserver({ metrics, log: log.logger, monotonicMs, secret: SECRET, tracing: tracer })
  const handlers = observedHandlers(observer, {
    'POST /internal/ratelimit/check': ({ body }) => {
      const request = body as PolicyRequest
      engine.check(request)
      engine.reserve({ ...request, cost: 1 })
      engine.decideDescriptors({ domain: 'shop', descriptors: [{ entries: [{ key: 'k', value: request.user! }] }] })
      engine.decideDescriptors({ domain: request.user!, descriptors: [{ entries: [{ key: 'k', value: 'v' }] }] })
      return jsonAnswer(200, '{}')
    },
    'PUT /admin/overrides': ({ body }) => {
      const { user = '', ip = '' } = body as PolicyRequest
      engine.entries.putOverride({ dimension: 'user', entity: user, resource: '/data/*', terms: { windows: [] } })
      engine.block('user', user, { duration: '1ms', reason: user })
      engine.block('ip', ip, { duration: '1ms' })
      return jsonAnswer(503, '{}')
    },
  })
  return { ...scene, threads, tracing, handlers, shown, recorder, rollups, bodies }
}

it('callers are never named in logs, metrics, spans and history (property)', async () => {
  const scene = await wholeScene()
  const { handlers, shown, log, clock, timers, tracing, recorder, rollups, bodies } = scene
  const call = (operation: string, request: PolicyRequest): void => {
    const headers = { 'user-agent': MARK, cookie: MARK, traceparent: MARK, authorization: `Bearer ${MARK}` }
    const asked = requestOf({ body: request, headers, remoteAddress: request.ip!, parameters: { name: MARK } })
    try {
      handlers[operation]!(asked)
    } catch (error) {
      log.logger.error('a request failed', { operation, error: errorFields(error) })
    }
    clock.advance(2)
  }
  await timers.advance(0)
  fc.assert(
    fc.property(requests, (request) => {
      for (let number = 0; number < 4; number++) call('POST /internal/ratelimit/check', request)
      call('PUT /admin/overrides', request)
    }),
    { numRuns: 300 },
  )
  await timers.advance(MINUTE_MS)
  await recorder.close()
  const pages = await Promise.all(
    ['text/plain', 'application/openmetrics-text'].map((accept) =>
      shown.metrics({ ...requestOf({ headers: { accept } }), parameters: {}, body: undefined }),
    ),
  )
  await tracing.close()
  const history = await Promise.all(
    [MINUTE_MS, HOUR_MS].map((stepMs) => rollups.list({ fromMs: 0, toMs: 1e15, stepMs })),
  )
  const written = {
    log: log.lines.join(''),
    metrics: pages.map((page) => (page as Answer).body).join(''),
    spans: bodies.join(''),
    history: JSON.stringify(history),
  }
  for (const [place, text] of Object.entries(written)) {
    // Everything is present, so an empty search result is meaningful.
    expect([place, text.length > 1000]).toEqual([place, true])
    for (const name of [MARK, '203.0.113.77', '2001:db8:dead', 'cb00:714d']) {
      expect([place, name, text.toLowerCase().indexOf(name.toLowerCase())]).toEqual([place, name, -1])
    }
  }
  expect(written.spans).toContain('ratelimit.check')
  expect(written.log).toContain('a caller was blocked')
  expect(written.log).toContain('could not apply an override to a rule')
  // A caller cannot inject a line into the log or into the metrics.
  expect(log.lines.every((line) => line.indexOf('\n') === line.length - 1 && JSON.parse(line) !== undefined)).toBe(true)
  expect(parseMetricsPage((pages[0] as Answer).body).length).toBeGreaterThan(100)
})

it('API keys are not even in what the admin API shows', async () => {
  const scene = await wholeScene()
  const { shown, engine, timers, clock, sleep, log, threads, tracing, recorder } = scene
  await timers.advance(0)
  for (let number = 0; number < 9; number++) engine.check({ resource: '/data/1', apiKey: MARK })
  const figures = () => figuresOf(threads, undefined)
  const nowMs = () => clock.nowMicros() / 1000
  const feed = liveFeed({ figures, nowMs, sleep, log: log.logger, limit: new StreamLimit(1) })
  let text = ''
  const stop = feed.open({ lastEventId: undefined, mayRead: () => true })!.stream(
    (event) => {
      text += event
      return true
    },
    () => undefined,
  )
  await timers.advance(1000)
  stop()
  text += ((await shown.top({ ...requestOf(), parameters: { limit: 10 }, body: undefined })) as Answer).body
  text += JSON.stringify(await threads.callMain('cluster.decisions', { most: 100 }))
  expect(text).toContain('apiKey')
  expect(text).not.toContain(MARK)
  await recorder.close()
  await tracing.close()
})
