import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Alert, DeadLetter, NodesAnswer, Operation } from '@sluice/contract'
import { OPERATIONS, SCHEMAS } from '@sluice/contract'
import type { JsonSchema } from '@sluice/core/internal'
import { SchemaCheck } from '@sluice/core/internal'
import { Logger, LogOutput } from '@sluice/runtime'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ERRORS, TestMonitor } from '../../alerts/alert-monitor.test.support.ts'
import { START_MS } from '../../alerts/alerts.test.support.ts'
import type { AlertMessages } from '../../alerts/process-alerts.ts'
import type { RedeliverOutcome } from '../../alerts/webhook-channel.ts'
import { operationRoutes } from '../../listeners/http/endpoints.ts'
import { BodyReader } from '../../listeners/http/request-body.ts'
import { RequestServer } from '../../listeners/http/request-server.ts'
import { createRouter } from '../../listeners/http/router.ts'
import type { ClusterFigures, ClusterMessages } from '../../observability/cluster/cluster-view.ts'
import { SingleThread } from '../../thread-messages/message-bus.ts'
import { AuditNotes } from '../admin/audit.ts'
import { serviceDocument } from '../openapi.ts'
import { alertHandlers } from './alerts.ts'

const operations = Object.values<Operation>(OPERATIONS).filter(({ tag }) => tag === 'alerts')
const answers = new SchemaCheck({ components: { schemas: SCHEMAS } } as JsonSchema)
const MINUTE = 60_000
const READER = new BodyReader(1_000_000)

let test: TestMonitor
let letters: DeadLetter[] = []
/** Result of a retry. Default: whether there is such a dead letter. */
let outcome: RedeliverOutcome | undefined
let origin: string

/** Alerts that another node has. */
let others: Alert[] = []

const threads = new SingleThread<AlertMessages & ClusterMessages>()
threads.handleInMain('cluster.figures', (node) => {
  const own = test.monitor.list().filter(({ state }) => state === 'firing')
  const alerts = { self: own, two: others }[node ?? ''] ?? [...own, ...others]
  return node === 'unknown' ? undefined : ({ alerts } as unknown as ClusterFigures)
})
threads.handleInMain('cluster.nodes', () => {
  const nodes = [
    { id: 'n1', name: 'one', isSelf: true },
    { id: 'n2', name: 'two', isSelf: false },
  ]
  return { at: 0, isShared: true, nodes } as unknown as NodesAnswer
})
threads.handleInMain('alerts.list', () => test.monitor.list())
threads.handleInMain('alerts.acknowledge', (id, actor) => test.monitor.acknowledge(id, actor))
threads.handleInMain('alerts.silence', (id, order) => test.monitor.silence(id, order))
threads.handleInMain('alerts.deadLetters', () => letters)
threads.handleInMain(
  'alerts.redeliver',
  (id) => outcome ?? (letters.some((letter) => letter.id === id) ? 'queued' : 'unknown'),
)

/** What is in the audit log. */
let noted: string[] = []
let isDatabaseAway = false
const lines: string[] = []

const notes = new AuditNotes({
  config: {
    audit: {
      add: ({ action, target }, { name, note }) => {
        if (isDatabaseAway) return Promise.reject(new Error('it is unreachable'))
        noted.push(`${name}: ${action} ${target}${note === undefined ? '' : ` (${note})`}`)
        return Promise.resolve()
      },
      list: () => Promise.reject(new Error('not used')),
    },
  },
  log: new Logger(
    new LogOutput({
      stream: {
        write: (text, written) => {
          lines.push(text)
          written()
          return true
        },
        on: () => undefined,
        off: () => undefined,
      },
      nowMs: () => START_MS,
      level: 'warn',
    }),
  ),
})

const server = createServer((request, response) => endpoints.serve(request, response))

const endpoints = new RequestServer({
  sleep: () => Promise.reject(new Error('Nothing waits here.')),
  route: createRouter(
    operationRoutes({
      operations,
      handlers: alertHandlers(threads, notes),
      components: serviceDocument('test').components.schemas,
      authenticator: { authenticate: () => ({ id: 'slk_1', name: 'ada', role: 'admin' }) },
      treatmentOf: () => ({
        inFlightLimit: undefined,
        bodies: READER,
        needsKey: false,
        hasRequestId: false,
      }),
    }),
    '',
  ),
  reportError: (error) => {
    throw error
  },
  newRequestId: () => 'r1',
})

beforeAll(async () => {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterAll(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

beforeEach(() => {
  test = new TestMonitor({ rules: { 'store-errors': { resolveAfterSeconds: 0 } } })
  outcome = undefined
  letters = []
  others = []
  noted = []
  isDatabaseAway = false
})

async function get(path: string): Promise<{ readonly status: number; readonly body: unknown }> {
  const response = await fetch(origin + path)
  return { status: response.status, body: await response.json() }
}

async function post(path: string, body?: unknown): Promise<{ status: number; body: unknown; headers: Headers }> {
  const sent = body === undefined ? {} : { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }
  const response = await fetch(origin + path, { method: 'POST', ...sent })
  const text = await response.text()
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text), headers: response.headers }
}

/** Fires the same rule `times` times; all but the last are resolved. */
async function fire(times: number): Promise<void> {
  for (let time = 0; time < times; time++) {
    await test.lookAt(time * 2000)
    await test.lookAt(time * 2000 + 1000, ERRORS)
  }
}

describe('handlers', () => {
  it('are there for every operation on alerts, and for nothing else', () => {
    const names = operations.map(({ id }) => id)
    expect(Object.keys(alertHandlers(threads, notes)).sort()).toEqual(names.sort())
    expect(names).toHaveLength(5)
  })
})

describe('GET /admin/alerts', () => {
  it('lists alerts in the form that is promised', async () => {
    await fire(2)
    test.monitor.acknowledge('a2', { by: 'bob', note: 'mine' })
    test.monitor.silence('a2', { by: 'bob', durationMs: MINUTE, note: 'load test' })
    const { status, body } = await get('/admin/alerts')
    expect(status).toBe(200)
    expect(answers.problemsOf(body, '#/components/schemas/AlertPage')).toEqual([])
    expect(body).toEqual({ items: test.monitor.list() })
    expect(body).toMatchObject({ items: [{ id: 'a2', silencedBy: 'bob', acknowledgedNote: 'mine' }, { id: 'a1' }] })
  })

  it('lists those that hold on other nodes, all or of one, and says where to acknowledge them', async () => {
    await fire(2)
    others = [{ ...test.monitor.list()[0]!, id: 'b1', scope: 'node', node: 'two', firedAt: START_MS + 60_000 }]
    const idsAt = async (path: string) =>
      ((await get(path)).body as { items: readonly Alert[] }).items.map(({ id }) => id)
    expect(await idsAt('/admin/alerts')).toEqual(['b1', 'a2', 'a1'])
    expect(await idsAt('/admin/alerts?node=self')).toEqual(['a2', 'a1'])
    expect(await idsAt('/admin/alerts?node=two')).toEqual(['b1'])
    expect((await get('/admin/alerts?node=unknown')).status).toBe(404)
    for (const [action, body] of [
      ['acknowledge', {}],
      ['silence', { duration: '1h' }],
    ] as const) {
      const answer = await post(`/admin/alerts/b1/${action}`, body)
      expect([action, answer.status]).toEqual([action, 409])
      expect(answer.body).toMatchObject({ detail: expect.stringContaining('Only the node two knows this alert') })
    }
  })

  it('goes on page by page', async () => {
    await fire(5)
    const seen: string[] = []
    let next: string | undefined = ''
    for (let page = 0; page < 3; page++) {
      const { body } = await get(`/admin/alerts?limit=2${next === '' ? '' : `&after=${next}`}`)
      const { items, next: after } = body as { items: { id: string }[]; next?: string }
      seen.push(...items.map(({ id }) => id))
      next = after
    }
    expect(seen).toEqual(['a5', 'a4', 'a3', 'a2', 'a1'])
    expect(next).toBeUndefined()
  })

  it('rejects a page that is none', async () => {
    expect(await get('/admin/alerts?after=x')).toMatchObject({
      status: 400,
      body: { code: 'SLUICE_HTTP_INVALID_REQUEST', errors: [{ path: '?after' }] },
    })
  })
})

describe('POST /admin/alerts/{id}/acknowledge', () => {
  it('notes who asked, and answers with the alert', async () => {
    await fire(1)
    const { status, body, headers } = await post('/admin/alerts/a1/acknowledge', { note: 'we know' })
    expect(status).toBe(200)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(answers.problemsOf(body, '#/components/schemas/Alert')).toEqual([])
    expect(body).toMatchObject({ id: 'a1', acknowledgedBy: 'ada', acknowledgedNote: 'we know' })
    expect(test.monitor.list()).toEqual([body])
    expect(noted).toEqual(['ada: alert.acknowledge store-errors a1 (we know)'])
  })

  it('works while the database with the audit log is unreachable, and the log says so', async () => {
    await fire(1)
    isDatabaseAway = true
    expect((await post('/admin/alerts/a1/acknowledge', {})).status).toBe(200)
    expect(lines.at(-1)).toContain('could not write to the audit log')
    expect(lines.at(-1)).toContain('alert.acknowledge')
  })

  it('needs no note', async () => {
    await fire(1)
    expect(await post('/admin/alerts/a1/acknowledge', {})).toMatchObject({
      status: 200,
      body: { acknowledgedBy: 'ada' },
    })
  })

  it('says that there is no such alert', async () => {
    expect(await post('/admin/alerts/a1/acknowledge', {})).toMatchObject({
      status: 404,
      body: { code: 'SLUICE_HTTP_NOT_FOUND', detail: expect.stringContaining('GET /admin/alerts') },
    })
    expect(noted).toEqual([])
  })

  it('rejects a field that it does not know', async () => {
    await fire(1)
    expect(await post('/admin/alerts/a1/acknowledge', { by: 'eve' })).toMatchObject({
      status: 400,
      body: { errors: [{ path: '/by' }] },
    })
    expect(test.monitor.list()[0]).not.toHaveProperty('acknowledgedBy')
  })
})

describe('POST /admin/alerts/{id}/silence', () => {
  it('keeps the rule quiet for so long from now on', async () => {
    await fire(1)
    const { status, body } = await post('/admin/alerts/a1/silence', { duration: '1h30m', note: 'until noon' })
    expect(status).toBe(200)
    expect(answers.problemsOf(body, '#/components/schemas/Alert')).toEqual([])
    expect(body).toMatchObject({
      silencedUntil: START_MS + 1000 + 90 * MINUTE,
      silencedBy: 'ada',
      silencedNote: 'until noon',
    })
    expect(noted).toEqual(['ada: alert.silence store-errors a1 for 1h30m (until noon)'])
  })

  it('ends a silence with a duration of nothing', async () => {
    await fire(1)
    await post('/admin/alerts/a1/silence', { duration: '1h' })
    const { body } = await post('/admin/alerts/a1/silence', { duration: '0s' })
    expect(body).not.toHaveProperty('silencedUntil')
  })

  it.each(['91d', '5', 'soon', ''])('rejects "%s" as a duration', async (duration) => {
    await fire(1)
    expect(await post('/admin/alerts/a1/silence', { duration })).toMatchObject({
      status: 400,
      body: { code: 'SLUICE_HTTP_INVALID_REQUEST', errors: [{ path: '/duration' }] },
    })
    expect(test.monitor.list()[0]).not.toHaveProperty('silencedUntil')
  })

  it('takes 90 days', async () => {
    await fire(1)
    expect(await post('/admin/alerts/a1/silence', { duration: '90d' })).toMatchObject({ status: 200 })
  })

  it('says that there is no such alert', async () => {
    expect(await post('/admin/alerts/a1/silence', { duration: '1h' })).toMatchObject({ status: 404 })
  })
})

describe('dead letters', () => {
  const letter = {
    id: 'a1_firing.0123456789abcdef',
    alertId: 'a1',
    destination: 'https://hooks.example.com',
    attempts: 10,
    firstAttemptAt: START_MS,
    lastAttemptAt: START_MS + 810_000,
    error: 'answered with status 502',
  }

  it('are listed in the form that is promised', async () => {
    letters.push(letter)
    const { status, body } = await get('/admin/alerts/dead-letters')
    expect(status).toBe(200)
    expect(answers.problemsOf(body, '#/components/schemas/DeadLetterPage')).toEqual([])
    expect(body).toEqual({ items: [letter] })
  })

  it('are tried again', async () => {
    letters.push(letter)
    expect(await post(`/admin/alerts/dead-letters/${letter.id}/retry`)).toMatchObject({ status: 202, body: undefined })
    expect(noted).toEqual([`ada: dead-letter.retry ${letter.id}`])
  })

  it('are not when they do not exist', async () => {
    expect(await post('/admin/alerts/dead-letters/x/retry')).toMatchObject({
      status: 404,
      body: { code: 'SLUICE_HTTP_NOT_FOUND' },
    })
  })

  it.each(['full', 'closed'] as const)('are not when the queue is %s', async (state) => {
    outcome = state
    const { status, body, headers } = await post('/admin/alerts/dead-letters/x/retry')
    expect(status).toBe(503)
    expect(body).toMatchObject({ code: 'SLUICE_HTTP_OVERLOADED' })
    expect(headers.get('retry-after')).toBe('10')
    expect(noted).toEqual([])
  })
})
