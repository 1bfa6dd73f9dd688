// Renders docs/reference/settings.md and docs/reference/metrics.md from the service itself: its setting table, and the
// metrics that a started service declares.
import { join } from 'node:path'
import { repositoryRoot } from './workspace.ts'
import { wrapped } from './wrap-text.ts'

/** Path of the settings reference, relative to the repository. */
export const settingsReferenceFile = 'docs/reference/settings.md'

/** Path of the metrics reference, relative to the repository. */
export const metricsReferenceFile = 'docs/reference/metrics.md'

/** The part of a setting definition that the reference shows. */
interface ShownSetting {
  readonly flag: string
  readonly variable: string
  readonly argument: string
  readonly help: string
  readonly schema: ShownSchema
}

interface ShownSchema {
  readonly title?: string
  readonly enum?: readonly unknown[]
  readonly minimum?: number
  readonly maximum?: number
}

/** The part of a started service that this file uses. */
interface StartedService {
  readonly origin: string
  readonly gatewayPort: number
  check(body: unknown): Promise<Response>
  admin(method: string, path: string, options: { readonly body: unknown }): Promise<Response>
  stop(): Promise<void>
}

/** A metric as `GET /metrics` shows it. */
export interface ShownMetric {
  readonly name: string
  readonly type: string
  readonly help: string
  readonly labels: readonly string[]
}

const SETTINGS_INTRODUCTION = `# Settings of the service

<!-- Generated from the setting table by \`npm run api-docs\`. Change the table, not this page. -->

Precedence: flag, then environment variable, then \`service\` in the file that \`--config\` names. An empty variable
counts as not set. \`npx sluice serve --help\` prints the same list. [Configure the
service](../guides/operate/configure.md) explains how to use a file.

Alert rules are set only in the file: see [alerts](../guides/operate/alerts.md). \`--new-admin-key\` is a flag only: see
[a lost admin key](../guides/operate/keys-and-roles.md#replace-a-lost-admin-key).`

const METRICS_INTRODUCTION = `# Metrics of the service

<!-- Generated from a started service by \`npm run api-docs\`. Change the metric definitions, not this page. -->

\`GET /metrics\` returns these metrics in the Prometheus or OpenMetrics text format, for all threads together. The
number of series is bounded, regardless of the number of callers and paths. Callers are never labels.
[Metrics, logs and traces](../guides/operate/metrics.md) explains how to use them.`

/** Headings of the metrics reference; a metric belongs to the first pattern that matches its name. */
const METRIC_GROUPS: readonly (readonly [heading: string, pattern: RegExp])[] = [
  ['Counter store', /^ratelimit_(?:store|redis|breaker|late|remembered|lease)/],
  ['Configuration', /^ratelimit_config/],
  ['Checks and rules', /^ratelimit_/],
  ['Alerts and webhooks', /^sluice_(?:alerts|webhook)/],
  ['Gateway', /^sluice_gateway/],
  ['HTTP and process', /./],
]

/** The text of the settings reference. */
export async function renderSettingsReference(): Promise<string> {
  const source = join(repositoryRoot, 'apps/service/src/settings/setting-table.ts')
  const { SETTING_TABLE } = (await import(source)) as { SETTING_TABLE: Readonly<Record<string, ShownSetting>> }
  const sections = Object.entries(SETTING_TABLE).map(([name, { flag, variable, argument, help, schema }]) => {
    const accepts = acceptedText(schema)
    const usage = `--${flag}${argument === '' ? '' : ` ${argument}`}`
    return [
      `## \`${name}\``,
      wrapped(help),
      [
        `- Flag: \`${usage}\``,
        `- Environment: \`${variable}\``,
        ...(accepts === undefined ? [] : [wrapped(`- Accepts: ${accepts}`, '  ')]),
      ].join('\n'),
    ].join('\n\n')
  })
  return `${[SETTINGS_INTRODUCTION, ...sections].join('\n\n')}\n`
}

/** What values a setting accepts; undefined if its help says so already. */
function acceptedText({ title, enum: values, minimum, maximum }: ShownSchema): string | undefined {
  if (title !== undefined) return title
  if (values !== undefined) return values.map((value) => `\`${value}\``).join(', ')
  return minimum === undefined ? undefined : `a whole number from ${minimum} to ${maximum}`
}

/** The text of the metrics reference. */
export async function renderMetricsReference(): Promise<string> {
  const metrics = await serviceMetrics()
  const groups = Map.groupBy(metrics, ({ name }) => METRIC_GROUPS.find(([, pattern]) => pattern.test(name))![0])
  const sections = METRIC_GROUPS.flatMap(([heading]) => {
    const members = groups.get(heading) ?? []
    const lines = members.map(({ name, type, labels, help }) => {
      const by = labels.length === 0 ? '' : ` by ${labels.map((label) => `\`${label}\``).join(', ')}`
      return wrapped(`- \`${name}\` (${type}${by}): ${help}`, '  ')
    })
    return [`## ${heading}`, lines.toSorted().join('\n')]
  })
  return `${[METRICS_INTRODUCTION, ...sections].join('\n\n')}\n`
}

/** Starts a service, causes one sample of each metric whose labels appear only with a sample, and reads all metrics. */
export async function serviceMetrics(): Promise<readonly ShownMetric[]> {
  const fixture = join(repositoryRoot, 'apps/service/src/service.fixture.ts')
  const { startService } = (await import(fixture)) as {
    readonly startService: (settings: object) => Promise<StartedService>
  }
  const tls = undefined
  const service = await startService({
    resp: { port: 0, tls },
    grpc: { port: 0, tls, deadlineMs: 15 },
    gateway: { port: 0, hasRoutes: false, isTls: false },
  })
  try {
    const limit = { dimension: 'user', limit: 1, window: '1m' }
    const resources = [
      { resource: '/shadow', rules: [{ ...limit, shadow: true }] },
      { resource: '/penalty', rules: [{ ...limit, penalty: { after: 1, within: '1m', block: '1m' } }] },
    ]
    for (const body of resources) expectStatus(200, await service.admin('PUT', '/admin/ratelimits', { body }))
    const rules = [{ resource: '/candidate', ...limit }]
    const draft = await service.admin('POST', '/admin/versions', { body: { ruleSet: { rules }, basedOn: 0 } })
    const { number } = (await draft.json()) as { readonly number: number }
    const stage = { body: { stage: 'shadow' } }
    expectStatus(200, await service.admin('POST', `/admin/versions/${number}/stage`, stage))
    expectStatus(200, await service.check({ user: 'ada', resource: '/candidate' }))
    expectStatus(200, await service.check({ user: 'ada', resource: '/shadow' }))
    expectStatus(200, await service.check({ user: 'bob', resource: '/penalty' }))
    expectStatus(429, await service.check({ user: 'bob', resource: '/penalty' }))
    expectStatus(200, await fetch(`http://127.0.0.1:${service.gatewayPort}/`))
    const page = await (await fetch(`${service.origin}/metrics`)).text()
    const metrics = metricsIn(page)
    // The service counts overflows of every metric that has labels.
    const labelled = [...page.matchAll(/^sluice_metrics_overflow_total\{metric="(\w+)"/gm)].map(([, name]) => name)
    const incomplete = metrics.filter(({ name, labels }) => labelled.includes(name) && labels.length === 0)
    if (incomplete.length === 0) return metrics
    throw new Error(`No sample shows the labels of ${incomplete.map(({ name }) => name).join(', ')}: cause one here.`)
  } finally {
    await service.stop()
  }
}

/** Metrics in a page of the Prometheus text format. */
export function metricsIn(page: string): readonly ShownMetric[] {
  return [...page.matchAll(/^# HELP (\S+) (.+)\n# TYPE \S+ (\S+)\n((?:(?!#).*\n)*)/gm)].map(
    ([, name = '', help = '', type = '', samples = '']) => {
      const labels = [...samples.matchAll(/[{,](\w+)="/g)].map(([, label]) => label!)
      return { name, help, type, labels: [...new Set(labels)].filter((label) => label !== 'le') }
    },
  )
}

function expectStatus(expected: number, { url, status }: Response): void {
  if (status !== expected) throw new Error(`${url} answered ${status}; expected ${expected}.`)
}
