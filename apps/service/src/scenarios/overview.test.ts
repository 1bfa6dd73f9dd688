import type {
  DecisionExplanation,
  DecisionRecord,
  DecisionUpdate,
  NodesAnswer,
  OverviewAnswer,
  OverviewUpdate,
  ShadowSeries,
} from '@sluice/contract'
import { systemSleep } from '@sluice/runtime'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RunningService } from '../service.fixture.ts'
import { START_MS, startService } from '../service.fixture.ts'

// What the dashboard shows, over HTTP, with time in the hands of the test.

const SPAN_MS = 10_000

async function started(settings: Parameters<typeof startService>[0] = {}): Promise<RunningService> {
  const service = await startService(settings)
  onTestFinished(() => service.stop())
  return service
}

async function get<T>(service: RunningService, path: string): Promise<T> {
  const response = await service.admin('GET', path)
  expect([path, response.status]).toEqual([path, 200])
  return (await response.json()) as T
}

/** Lets the rest of the current 10 seconds pass, and waits until what was counted in them is stored. */
async function endSpan(service: RunningService, clock: { ms: number }): Promise<void> {
  const restMs = SPAN_MS - (clock.ms % SPAN_MS)
  service.advance(restMs * 1000)
  clock.ms += restMs
  await service.endWaits(restMs)
}

async function until<T>(look: () => Promise<T>, holds: (found: T) => boolean): Promise<T> {
  for (;;) {
    const found = await look()
    if (holds(found)) return found
    await systemSleep(1)
  }
}

const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0)

async function check(service: RunningService, times: number, body: object): Promise<number> {
  let denied = 0
  for (let time = 0; time < times; time++) if ((await service.check(body)).status === 429) denied++
  return denied
}

/** The data of events of a stream, as they come. */
async function* events<T>(service: RunningService, path: string): AsyncGenerator<T> {
  const gone = new AbortController()
  onTestFinished(() => gone.abort())
  const headers = { Authorization: `Bearer ${service.adminKey}` }
  const response = await fetch(service.origin + path, { headers, signal: gone.signal })
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  let text = ''
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk
    const parts = text.split('\n\n')
    text = parts.pop()!
    for (const part of parts) {
      const data = /^data: (.*)$/m.exec(part)?.[1]
      if (data !== undefined) yield JSON.parse(data) as T
    }
  }
}

describe('the overview', () => {
  it('has aligned series of what happened, also where nothing did', async () => {
    const service = await started({ region: 'EU' })
    const clock = { ms: START_MS }
    const denied = await check(service, 103, { userId: 'ann', resource: '/orders' })
    expect(denied).toBe(3)
    await endSpan(service, clock)
    const path = `/admin/overview?from=${START_MS - 600_000}&stepMs=10000`
    const overview = await until(
      () => get<OverviewAnswer>(service, path),
      (answer) => sum(answer.checks) > 0,
    )
    const { at, stepMs, checks, denials, resources, regions, storeP99Ms } = overview
    expect(stepMs).toBe(SPAN_MS)
    expect(at).toHaveLength(61)
    expect(at.every((start, place) => start === at[0]! + place * SPAN_MS)).toBe(true)
    for (const series of [checks, denials, storeP99Ms, resources[0]!.checks, regions[0]!.denials]) {
      expect(series).toHaveLength(61)
    }
    expect([sum(checks), sum(denials)]).toEqual([103, 3])
    expect(checks[60]).toBe(103)
    expect(storeP99Ms.filter((value) => value !== null)).toHaveLength(1)
    expect(resources.map(({ name, checks: each }) => [name, sum(each)])).toEqual([['*', 103]])
    expect(regions.map(({ name }) => name)).toEqual(['EU'])
    expect(overview).toMatchObject({ nodes: 1, version: 1, breaker: 'closed', firingAlerts: 0 })
    expect(overview.alertBounds).toEqual({ denialRate: 0.2, storeLatencyMs: 10, configLagMs: 600_000 })
    expect(overview.top).toMatchObject([{ dimension: 'user', entries: [{ entity: 'ann', denials: 3 }] }])
  })

  it.each([
    ['15 minutes', 900_000, 10_000],
    ['an hour', 3_600_000, 30_000],
    ['a day', 86_400_000, 900_000],
    ['30 days', 2_592_000_000, 21_600_000],
  ])('of %s has bounded steps', async (_name, lengthMs, stepMs) => {
    const service = await started()
    const overview = await get<OverviewAnswer>(service, `/admin/overview?from=${START_MS - lengthMs}`)
    expect(overview.stepMs).toBe(stepMs)
    expect(overview.at.length).toBeLessThanOrEqual(122)
    const most = await get<OverviewAnswer>(service, `/admin/overview?from=${START_MS - lengthMs}&stepMs=1000`)
    expect(most.at.length).toBeLessThanOrEqual(401)
  })

  it('names the resources that deny most, and the rest together', async () => {
    const service = await started()
    const clock = { ms: START_MS }
    for (let number = 0; number < 6; number++) {
      const rules = [{ dimension: 'user', limit: number, window: '1h' }]
      await service.admin('PUT', '/admin/ratelimits', { body: { resource: `/r${number}`, rules } })
    }
    for (let number = 0; number < 6; number++) await check(service, 8, { userId: 'u', resource: `/r${number}` })
    await endSpan(service, clock)
    const { resources } = await until(
      () => get<OverviewAnswer>(service, '/admin/overview?resources=2'),
      ({ checks }) => sum(checks) > 0,
    )
    expect(resources.map(({ name, checks, denials }) => [name, sum(checks), sum(denials)])).toEqual([
      ['/r0', 8, 8],
      ['/r1', 8, 7],
      ['other', 32, 4 * 8 - (2 + 3 + 4 + 5)],
    ])
  })

  it('goes on in a stream that sends only what changed, ten times a second', async () => {
    const service = await started()
    const updates = events<OverviewUpdate>(service, '/admin/overview/live?everyMs=100')
    const next = async (): Promise<OverviewUpdate> => {
      const coming = updates.next()
      service.advance(100_000)
      await service.endWaits(100)
      return (await coming).value as OverviewUpdate
    }
    const first = await next()
    expect(first).toMatchObject({ checks: 0, nodes: 1, version: 1, breaker: 'closed', top: [] })
    await check(service, 5, { userId: 'ann', resource: '/orders' })
    const second = await next()
    expect(second).toMatchObject({ spanMs: 100, checks: 5, denials: 0 })
    for (const name of ['nodes', 'version', 'breaker', 'top', 'resources']) expect(second).not.toHaveProperty(name)
    expect(JSON.stringify(await next()).length).toBeLessThan(150)
  })

  it('stays small with 500 resources', async () => {
    const service = await started()
    const rules = Array.from({ length: 500 }, (_, number) => ({
      ...{ resource: `/resource-${number}`, dimension: 'user', limit: 1, window: '1h' },
    }))
    await service.admin('POST', '/admin/versions', { body: { ruleSet: { rules }, basedOn: 1 } })
    expect((await service.admin('POST', '/admin/versions/2/stage', { body: { stage: 'enforce' } })).status).toBe(200)
    for (let number = 0; number < 500; number++)
      await check(service, 2, { userId: 'u', resource: `/resource-${number}` })
    const updates = events<OverviewUpdate>(service, '/admin/overview/live?everyMs=100&resources=10')
    const coming = updates.next()
    service.advance(100_000)
    await service.endWaits(100)
    expect(JSON.stringify((await coming).value).length).toBeLessThan(2000)
    await endSpan(service, { ms: START_MS })
    const overview = await until(
      () => get<OverviewAnswer>(service, `/admin/overview?from=${START_MS - 900_000}`),
      ({ checks }) => sum(checks) > 0,
    )
    expect([sum(overview.checks), sum(overview.denials)]).toEqual([1000, 500])
    expect(overview.resources).toHaveLength(11)
    expect(JSON.stringify(overview).length).toBeLessThan(20_000)
  })
})

describe('a version in shadow', () => {
  it('has a series of what it would have denied, beside what was', async () => {
    const service = await started()
    const clock = { ms: START_MS }
    const rules = [{ resource: '/orders', dimension: 'user', limit: 2, window: '1h' }]
    await service.admin('POST', '/admin/versions', { body: { ruleSet: { rules }, basedOn: 1 } })
    expect((await service.admin('POST', '/admin/versions/2/stage', { body: { stage: 'shadow' } })).status).toBe(200)
    expect(await check(service, 10, { userId: 'ann', resource: '/orders' })).toBe(0)
    await endSpan(service, clock)
    const series = await until(
      () => get<ShadowSeries>(service, '/admin/versions/2/shadow'),
      ({ checks }) => sum(checks) > 0,
    )
    expect([sum(series.checks), sum(series.denials)]).toEqual([10, 0])
    expect([sum(series.shadowChecks), sum(series.shadowDenials)]).toEqual([10, 8])
    expect(series.rules.map(({ resource, dimension, denials }) => [resource, dimension, sum(denials)])).toEqual([
      ['/orders', 'user', 8],
    ])
    const overview = await get<OverviewAnswer>(service, '/admin/overview')
    expect([overview.candidate, sum(overview.shadowChecks), sum(overview.shadowDenials)]).toEqual([2, 10, 8])
    expect(sum((await get<ShadowSeries>(service, '/admin/versions/3/shadow')).shadowChecks)).toBe(0)
  })
})

describe('recent decisions', () => {
  it('are listed, filtered, and lead to why they were made', async () => {
    const service = await started()
    await check(service, 101, { userId: 'ann', apiKey: 'secret-key', resource: '/orders', method: 'POST' })
    const page = await get<{ items: readonly DecisionRecord[] }>(service, '/admin/decisions?outcome=denied')
    expect(page.items).toHaveLength(1)
    const [denied] = page.items
    expect(denied).toMatchObject({ allowed: false, caller: 'ann', rule: 'default-user', reason: 'limit' })
    const answer = await get<DecisionExplanation>(service, `/admin/decisions/${denied!.id}/explain`)
    expect(answer.unknown).toEqual([])
    expect(answer.explanation.rules.find(({ rule }) => rule === 'default-user')).toMatchObject({ fate: 'applies' })
    expect(JSON.stringify([page, answer.decision])).not.toContain('secret-key')
    expect((await service.admin('GET', '/admin/decisions/nothing/explain')).status).toBe(404)
    const first = await get<{ items: readonly DecisionRecord[]; next: string }>(service, '/admin/decisions?limit=3')
    expect(first.items).toHaveLength(3)
    const second = await get<typeof first>(service, `/admin/decisions?limit=1000&after=${first.next}`)
    expect(second.items.length).toBe(13 - 3)
  })

  it('have the id of the answer to the check', async () => {
    const service = await started()
    const { decisionId } = (await (await service.check({ userId: 'ann', resource: '/orders' })).json()) as {
      decisionId: string
    }
    const { items } = await get<{ items: readonly DecisionRecord[] }>(service, '/admin/decisions')
    expect(items.map(({ id }) => id)).toEqual([decisionId])
  })

  it('are streamed, each once', async () => {
    const service = await started()
    await check(service, 2, { userId: 'ann', resource: '/a' })
    const updates = events<DecisionUpdate>(service, '/admin/decisions/live?caller=ann')
    const next = async (): Promise<readonly string[]> => {
      let update: DecisionUpdate | undefined
      const coming = updates.next().then(({ value }) => {
        update = value as DecisionUpdate
      })
      // The wait of the feed may not have begun. Events without decisions are not sent.
      await until(
        () => service.endWaits(1000),
        () => update !== undefined,
      )
      await coming
      return update!.decisions.map(({ resource }) => resource)
    }
    expect(await next()).toEqual(['/a', '/a'])
    service.advance(1000)
    await check(service, 1, { userId: 'bob', resource: '/b' })
    await check(service, 1, { userId: 'ann', resource: '/c' })
    expect(await next()).toEqual(['/c'])
  })
})

describe('nodes', () => {
  it('say how they stand, and can be asked one by one', async () => {
    const service = await started({ region: 'EU' })
    service.advance(5_000_000)
    const { nodes, isShared } = await get<NodesAnswer>(service, '/admin/nodes')
    expect(isShared).toBe(false)
    expect(nodes).toHaveLength(1)
    expect(nodes[0]).toMatchObject({
      isSelf: true,
      isLost: false,
      region: 'EU',
      uptimeMs: 5000,
      threads: 1,
      servingThreads: 1,
      configVersion: 1,
      store: 'memory',
      breaker: 'closed',
    })
    for (const path of ['top', 'overview', 'history', 'versions/1/shadow']) {
      for (const name of ['self', nodes[0]!.id, nodes[0]!.name]) {
        await get(service, `/admin/${path}?node=${encodeURIComponent(name)}`)
      }
      expect((await service.admin('GET', `/admin/${path}?node=unknown`)).status).toBe(404)
    }
    expect((await service.admin('GET', '/admin/live?node=unknown')).status).toBe(404)
    expect((await service.admin('GET', '/admin/overview/live?node=unknown')).status).toBe(404)
  })
})
