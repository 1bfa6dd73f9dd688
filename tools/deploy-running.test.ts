// The service runs as the image has it, on a real Redis and a real PostgreSQL, and receives checks. A real
// Prometheus scrapes it with the configuration of deploy/, and every query of the rules, the alerts and the dashboards
// finds something.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { CHECK_PATH } from '@sluice/contract'
import { freePort, startPostgres, startRedis } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dashboards, prometheusRules, readDeployFile, readDeployYaml } from './deploy.test.support.ts'
import { ImageRoot } from './deploy-root.test.support.ts'
import { ExampleProcess } from './examples-process.ts'
import { findRequirements, requirements } from './requirements.ts'

const CALLER = 'caller-that-is-no-label'
const CHECKS_AT_A_TIME = 10

/** Prometheus needs two samples for a rate. */
const LONGEST_WAIT_MS = 15_000
const POLL_MS = 200

const programs = findRequirements(requirements)

/** All that runs for these tests. */
interface Scene {
  readonly image: ImageRoot
  readonly environment: Readonly<Record<string, string>>
  readonly origin: string
  readonly service: ExampleProcess
  readonly startedWith: string
  readonly key: string
  readonly prometheusUrl: string
}

let scene: Scene
let traffic: Promise<void> = Promise.resolve()
const noMoreTraffic = new AbortController()
/** What was opened, to be closed in the opposite order. */
const opened = new AsyncDisposableStack()

beforeAll(async () => {
  const redis = opened.use(await startRedis())
  const postgres = opened.use(await startPostgres())
  const image = new ImageRoot()
  opened.defer(() => image.remove())
  const port = await freePort()
  const environment = {
    PORT: String(port),
    REDIS_URL: redis.url,
    DATABASE_URL: postgres.url,
    SLUICE_REGION: 'eu',
    SLUICE_THREADS: '2',
    SLUICE_DRAIN_MS: '2000',
    // A busy machine must not turn counted checks into ones that the failure mode allows.
    SLUICE_STORE_DEADLINE_MS: '5000',
  }
  const service = image.start(environment)
  opened.defer(async () => void (await service.stop('SIGKILL')))
  const startedWith = await service.printed(/([\s\S]+^Try it:)$/m)
  const key = readFileSync(join(image.data, 'admin-key'), 'utf8').trim()
  const prometheusUrl = await startPrometheus(`127.0.0.1:${port}`)
  scene = { image, environment, origin: `http://127.0.0.1:${port}`, service, startedWith, key, prometheusUrl }
  traffic = makeTraffic()
})

afterAll(async () => {
  noMoreTraffic.abort()
  await traffic
  await opened.disposeAsync()
})

/** The files of deploy/prometheus, with one target, and faster: what takes a minute there takes seconds here. */
async function startPrometheus(target: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-prometheus-'))
  opened.defer(() => rmSync(folder, { recursive: true, force: true }))
  const faster = (text: string): string => text.replaceAll(/interval: 15s/g, 'interval: 1s')
  for (const file of ['rules.yaml', 'alerts.yaml']) {
    writeFileSync(join(folder, file), faster(readDeployFile(`prometheus/${file}`)))
  }
  const config = faster(readDeployFile('prometheus/prometheus.yaml'))
  const [kept = ''] = config.split(/^ {4}# One address.*\n {4}dns_sd_configs:$/m)
  const labels = '{ namespace: sluice, pod: sluice-0 }'
  const targets = `    static_configs: [{ targets: ["${target}"], labels: ${labels} }]\n`
  writeFileSync(join(folder, 'prometheus.yaml'), kept + targets)
  const address = `127.0.0.1:${await freePort()}`
  const prometheus = new ExampleProcess({
    command: programs.get('prometheus')!,
    args: [
      `--config.file=${folder}/prometheus.yaml`,
      `--storage.tsdb.path=${folder}/data`,
      `--web.listen-address=${address}`,
    ],
    cwd: folder,
  })
  opened.defer(async () => void (await prometheus.stop('SIGKILL')))
  while ((await fetch(`http://${address}/-/ready`).catch(() => undefined))?.status !== 200) {
    if (prometheus.hasEnded) throw new Error((await prometheus.end()).complaints)
    await pause(POLL_MS)
  }
  return `http://${address}`
}

async function check(body: unknown): Promise<number> {
  const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${scene.key}` }
  const answer = await fetch(scene.origin + CHECK_PATH, { method: 'POST', headers, body: JSON.stringify(body) })
  await answer.arrayBuffer()
  return answer.status
}

/**
 * Checks of one caller who is soon denied and of others who are not, with a region, without a caller, and without a
 * matching rule.
 */
async function makeTraffic(): Promise<void> {
  for (let round = 0; !noMoreTraffic.signal.aborted; round++) {
    await Promise.all([
      ...Array.from({ length: CHECKS_AT_A_TIME }, () => check({ userId: CALLER, resource: '/orders' })),
      check({ userId: `user-${round}`, resource: '/orders', region: 'eu' }),
      check({ resource: '/anonymous' }),
    ])
    await pause(POLL_MS)
  }
}

interface Sample {
  readonly metric: Readonly<Record<string, string>>
  readonly value: readonly [number, string]
}

async function ask<T>(path: string, parameters: Readonly<Record<string, string>> = {}): Promise<T> {
  const url = `${scene.prometheusUrl}/api/v1/${path}?${new URLSearchParams(parameters)}`
  const answer = await fetch(url)
  const { data, error } = (await answer.json()) as { data: T; error?: string }
  if (error !== undefined) throw new Error(`${parameters['query']}: ${error}`)
  return data
}

/** What a query finds that is a number. */
async function query(expression: string): Promise<readonly Sample[]> {
  const { result } = await ask<{ result: readonly Sample[] }>('query', { query: expression })
  return result.filter(({ value }) => Number.isFinite(Number(value[1])))
}

/** Those of the expressions that find nothing, after a while in which they may. */
async function thoseWithoutData(expressions: readonly string[]): Promise<readonly string[]> {
  const giveUpAt = performance.now() + LONGEST_WAIT_MS
  let left = [...expressions]
  while (left.length > 0 && performance.now() < giveUpAt) {
    const found = await Promise.all(left.map((expression) => query(expression).catch(() => [])))
    left = left.filter((_, index) => found[index]!.length === 0)
    if (left.length > 0) await pause(POLL_MS)
  }
  // Once more, for the error of what Prometheus does not understand.
  for (const expression of left) await query(expression)
  return left
}

/** An expression of a dashboard, with what Grafana puts in for its variables. */
function filledIn(expression: string): string {
  return expression
    .replaceAll('$job', 'sluice')
    .replaceAll('$instance', '.*')
    .replaceAll('$__rate_interval', '10s')
    .replaceAll('$__range', '1m')
    .replace(/^label_values\((.*), \w+\)$/, '$1')
}

describe('the image', () => {
  it('starts without npm and node_modules, and tells its key to a file alone', () => {
    expect(scene.startedWith).toContain('The admin API key is in /var/lib/sluice/admin-key')
    expect(scene.startedWith).not.toContain(scene.key)
    const folders = scene.image.files().map((path) => path.split('/')[1])
    expect(new Set(folders)).toEqual(new Set(['lib', 'lib64', 'nodejs', 'opt', 'var']))
  })

  it('is healthy by its own check while the service answers, and not otherwise', async () => {
    expect(await scene.image.checkHealth(scene.environment)).toEqual({ code: 0, output: '' })
    expect(await scene.image.checkHealth({ PORT: String(await freePort()) })).toEqual({ code: 1, output: '' })
  })
})

describe('Prometheus', () => {
  it.each(['rules.yaml', 'alerts.yaml'])('finds something for each expression of %s', async (file) => {
    // An alert asks whether a value is above something: both sides of that exist, and mostly nothing is above it.
    const expressions = prometheusRules(file).flatMap(({ expr, record }) =>
      record === undefined
        ? expr
            .split(/\sand\s|\sunless on \(job\)\s/)
            .map((part) => part.replace(/^\s*\(/, '').replace(/ (?:>=?|==) [\d.]+\)?\s*$/, ''))
        : [record, expr],
    )
    expect(await thoseWithoutData(expressions)).toEqual([])
  })

  it.each(dashboards())('finds something for each query of %s', async (_file, { panels, templating }) => {
    const queries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
    const variables = templating.list.flatMap((variable) => (variable.type === 'query' ? [variable.query] : []))
    expect(await thoseWithoutData([...queries, ...variables].map(filledIn))).toEqual([])
  })

  it('knows every metric that is named', async () => {
    const text = [
      ...dashboards().flatMap(([, { panels }]) =>
        panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
      ),
      ...[...prometheusRules('rules.yaml'), ...prometheusRules('alerts.yaml')].map(({ expr }) => expr),
    ].join('\n')
    const named = new Set(text.match(/\b(?:(?:instance|job):\w+:\w+|(?:ratelimit|sluice|nodejs|process)_\w+)/g))
    const known = new Set(await ask<string[]>('label/__name__/values'))
    expect([...named].filter((name) => !known.has(name))).toEqual([])
    expect(named.size).toBeGreaterThan(30)
  })

  it('offers the autoscaler the requests of a pod', async () => {
    type Adapter = { rules: { custom: [{ seriesQuery: string; metricsQuery: string }] } }
    const [{ seriesQuery, metricsQuery }] = readDeployYaml<Adapter>('kubernetes/prometheus-adapter.yaml').rules.custom
    const asked = metricsQuery
      .replace('<<.GroupBy>>', 'pod')
      .replace('<<.Series>>', 'sluice_http_requests_total')
      .replace('<<.LabelMatchers>>', 'namespace="sluice"')
    expect(await thoseWithoutData([seriesQuery, asked])).toEqual([])
    expect((await query(asked)).map(({ metric }) => metric)).toEqual([{ pod: 'sluice-0' }])
  })

  it('evaluates all rules, and sees that too many checks are denied', async () => {
    type Rules = { groups: { rules: { name: string; health: string; state?: string; lastError?: string }[] }[] }
    expect(await thoseWithoutData(['ALERTS{alertname="SluiceDenialRate"}'])).toEqual([])
    const { groups } = await ask<Rules>('rules')
    const rules = groups.flatMap((group) => group.rules)
    expect(rules).toHaveLength(prometheusRules('rules.yaml').length + prometheusRules('alerts.yaml').length)
    expect(rules.filter(({ health }) => health !== 'ok')).toEqual([])
    const states = rules.flatMap(({ name, state = 'none' }) =>
      name === 'SluiceDenialRate' || name === 'SluiceDown' ? [`${name} ${state}`] : [],
    )
    expect(states).toEqual(['SluiceDenialRate pending', 'SluiceDown inactive'])
  })

  it('learns the region and the resource of a check, and no caller', async () => {
    const regions = await query('sum by (region) (ratelimit_region_checks_total)')
    expect(regions.map(({ metric }) => metric['region'])).toContain('eu')
    const metrics = await (await fetch(`${scene.origin}/metrics`)).text()
    expect(metrics).not.toContain(CALLER)
    const headers = { Authorization: `Bearer ${scene.key}` }
    const top = await (await fetch(`${scene.origin}/admin/top`, { headers })).text()
    expect(top).toContain(CALLER)
    // The dashboard, where the links to the top callers lead.
    const page = await fetch(`${scene.origin}/`)
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    await page.arrayBuffer()
  })
})

describe('the image when it is stopped', () => {
  it('is not ready while it drains, ends in order, and has written to its data folder alone', async () => {
    noMoreTraffic.abort()
    await traffic
    const ended = scene.service.stop('SIGTERM')
    await scene.service.printed(/(Shutting down)/)
    const readiness = await fetch(`${scene.origin}/readyz`)
    await readiness.arrayBuffer()
    expect(readiness.status).toBe(503)
    const { code, complaints } = await ended
    expect(code).toBe(0)
    expect(complaints.split('\n').filter((line) => line.includes('"level":"error"'))).toEqual([])
    const written = scene.image.written()
    expect(written).toContain('/var/lib/sluice/admin-key')
    expect(written.filter((path) => !path.startsWith('/var/lib/sluice/'))).toEqual([])
  })
})
