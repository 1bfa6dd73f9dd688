// What stands in deploy/ fits the service as it is: its settings, its paths, how long it takes to stop, its alerts.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, matchesGlob } from 'node:path'
import { LONGEST_WAIT_MS, OPERATIONS } from '@sluice/contract'
import { readSettings } from '@sluice/service/settings'
import { describe, expect, it } from 'vitest'
import { alertRules, conditionsThrough } from '../apps/service/src/alerts/alert-rule.ts'
import { SETTING_TABLE } from '../apps/service/src/settings/setting-table.ts'
import type { KubernetesObject } from './deploy.test.support.ts'
import {
  assignments,
  dashboards,
  deployFiles,
  deployPath,
  imageCommand,
  imageEnvironment,
  kubernetesObjects,
  prometheusRules,
  readDeployFile,
  readDeployYaml,
  unitValues,
} from './deploy.test.support.ts'
import { repositoryRoot } from './workspace.ts'

type Environment = Readonly<Record<string, string>>

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string }
  readonly periodSeconds: number
  readonly failureThreshold: number
}

interface Container {
  readonly image: string
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
  readonly env: readonly {
    readonly name: string
    readonly valueFrom: { readonly secretKeyRef: { readonly key: string } }
  }[]
  readonly startupProbe: Probe
  readonly livenessProbe: Probe
  readonly readinessProbe: Probe
  readonly securityContext: unknown
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
}

type Metadata = Readonly<Record<'labels' | 'annotations', Environment>>

interface PodSpec {
  readonly terminationGracePeriodSeconds: number
  readonly securityContext: unknown
  readonly containers: readonly [Container]
  readonly volumes: readonly {
    readonly name: string
    readonly secret?: { readonly items: readonly { readonly key: string }[] }
  }[]
}

interface ComposeService {
  readonly image: string
  readonly environment?: Environment
  readonly volumes?: readonly string[]
  readonly depends_on?: readonly string[] | Readonly<Record<string, unknown>>
  readonly read_only?: boolean
  readonly stop_grace_period?: string
}

interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>
  readonly volumes: Readonly<Record<string, unknown>>
}

const compose = readDeployYaml<Compose>('compose.yaml')
const objects = deployFiles()
  .filter((path) => path.startsWith('kubernetes/'))
  .map((path) => path.slice('kubernetes/'.length))
  .filter((file) => file !== 'kustomization.yaml' && file !== 'prometheus-adapter.yaml')
  .flatMap((file) => kubernetesObjects(file))

function objectOf<T>(kind: string): KubernetesObject & T {
  return objects.find((object) => object.kind === kind) as KubernetesObject & T
}

const deployment = objectOf<{
  spec: { selector: { matchLabels: Environment }; template: { metadata: Metadata; spec: PodSpec } }
}>('Deployment')
const pod = deployment.spec.template.spec
const [container] = pod.containers
const secret = objectOf<{ stringData: Environment }>('Secret').stringData
const configMap = objectOf<{ data: Environment }>('ConfigMap').data

const SECOND_MS = 1000

/** What a stop may take after the drain time, as docs/guides/operate/health.md has it. */
const STOP_MS = 15_000

function seconds(text: string): number {
  const [, count, unit] = /^(\d+)(s|m)$/.exec(text)!
  return Number(count) * (unit === 'm' ? 60 : 1)
}

const environments: Readonly<Record<string, Environment>> = {
  image: imageEnvironment(),
  compose: Object.fromEntries(
    Object.entries({ ...imageEnvironment(), ...compose.services['sluice']!.environment }).map(([name, value]) => [
      name,
      value.replaceAll(/\$\{\w+(?::\?[^}]*)?\}/g, 'password'),
    ]),
  ),
  kubernetes: {
    ...imageEnvironment(),
    ...configMap,
    ...Object.fromEntries(container.env.map(({ name, valueFrom }) => [name, secret[valueFrom.secretKeyRef.key]!])),
  },
  systemd: assignments(unitValues('Environment')),
}

const variables = new Set(Object.values(SETTING_TABLE).map(({ variable }) => variable))
const paths = new Set(Object.values(OPERATIONS).map(({ path }) => path))

describe.each(Object.entries(environments))('the environment of %s', (name, environment) => {
  it('has settings of the service alone', () => {
    const others = Object.keys(environment).filter((variable) => !variables.has(variable))
    expect(others).toEqual(['NODE_ENV'])
  })

  it('can be read by the service', () => {
    const settings = readSettings({ args: [], environment, cores: 2 })
    expect(settings.dataDir).toBe('/var/lib/sluice')
    expect(settings.adminKeyFile).toMatch(/^\/.*\/admin-key$/)
    // What others can reach asks for a key.
    expect(settings.checkKey).toBe(name !== 'systemd')
  })
})

it('names no setting in a comment or in the guide that the service does not have', () => {
  const texts = [...deployFiles().map((path) => readDeployFile(path)), guide(), guide('kubernetes.md')]
  const named = new Set(
    texts.flatMap((text) => text.match(/\b(?:SLUICE_[A-Z_]+[A-Z]|REDIS_URL|DATABASE_URL)\b/g) ?? []),
  )
  // The command line reads these two.
  const others = [...named].filter((variable) => !variables.has(variable) && !/^SLUICE_(?:API_KEY|URL)$/.test(variable))
  expect(others).toEqual([])
  expect(named.size).toBeGreaterThan(8)
})

function guide(page = 'deployment-files.md'): string {
  return readFileSync(join(repositoryRoot, 'docs/guides/operate', page), 'utf8')
}

it('asks for paths that the service has', () => {
  const files = deployFiles().filter((path) => !path.endsWith('.test.yaml'))
  const asked = files.flatMap((path) => {
    const text = readDeployFile(path)
    const found = text.match(/\/(?:livez|readyz|metrics|healthz|admin\/[\w/.-]*[\w])\b/g) ?? []
    return found
      .filter((candidate) => !candidate.startsWith('/admin/key'))
      .map((candidate) => [path, candidate] as const)
  })
  expect(asked.filter(([, path]) => !paths.has(path))).toEqual([])
  expect(new Set(asked.map(([, path]) => path))).toEqual(
    new Set(['/livez', '/readyz', '/metrics', '/admin/live', '/admin/top', '/admin/alerts/dead-letters']),
  )
})

describe('the image', () => {
  it('runs what the bundle has, as a user without rights', () => {
    const dockerfile = readDeployFile('Dockerfile')
    expect(imageCommand('ENTRYPOINT')).toEqual(['/nodejs/bin/node', '/opt/sluice/dist/programs/service.js'])
    expect(dockerfile).toMatch(/^USER 65532:65532$/m)
    const last = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '))
    expect(last).not.toMatch(/^RUN|\bnpm (?:ci|install|start)/m)
    expect(imageCommand('CMD').join(' ')).toContain('/readyz')
  })
})

describe('the table of what was verified', () => {
  const text = guide()
  const rows = text
    .slice(text.indexOf('## How each file was verified'))
    .split('\n')
    .filter((line) => line.startsWith('| `'))
  const named = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name!)

  it('has each file of deploy/ once, and no other', () => {
    expect(rows.flatMap((row) => named(row.split('|')[1]!)).sort()).toEqual([...deployFiles()].sort())
  })

  it('names for each a command that exists', () => {
    const commands = new Map(
      [...text.matchAll(/^- \*(\w+)\*: `npm test -- ([\w./-]+)`/gm)].map(([, name, path]) => [name, path!]),
    )
    for (const path of commands.values()) expect(existsSync(join(repositoryRoot, path)), path).toBe(true)
    for (const row of rows) {
      const used = [...row.split('|')[2]!.matchAll(/\*(\w+)\*/g)].map(([, name]) => name)
      expect(used.length, row).toBeGreaterThan(0)
      expect(used.filter((name) => !commands.has(name))).toEqual([])
    }
  })
})

describe('the ignored files', () => {
  it('of Docker are none that the build copies, and all with secrets', () => {
    const ignored = readDeployFile('Dockerfile.dockerignore').trim().split('\n')
    const isIgnored = (path: string): boolean =>
      ignored.some((pattern) => matchesGlob(path, pattern) || matchesGlob(path, `${pattern}/**`))
    const copied = [
      'package.json',
      'package-lock.json',
      'tools/run.mjs',
      'apps/service/src/main.ts',
      'packages/core/src/index.ts',
    ]
    expect(copied.filter(isIgnored)).toEqual([])
    const kept = ['.env', 'deploy/.env', '.git/config', 'node_modules/a.js', 'apps/cli/dist/a.js', '.sluice/admin-key']
    expect(kept.filter((path) => !isIgnored(path))).toEqual([])
  })

  it('of git are those with passwords for compose', () => {
    const path = 'deploy/.env'
    expect(execFileSync('git', ['check-ignore', '--no-index', path], { cwd: repositoryRoot, encoding: 'utf8' })).toBe(
      `${path}\n`,
    )
  })
})

describe('compose.yaml', () => {
  it.each(Object.entries(compose.services))('%s has what it mounts and waits for', (_name, service) => {
    for (const volume of service.volumes ?? []) {
      const [source = ''] = volume.split(':')
      if (source.startsWith('./')) expect(existsSync(deployPath(source)), volume).toBe(true)
      else expect(Object.keys(compose.volumes)).toContain(source)
    }
    const { depends_on: awaited = [] } = service
    const names = Array.isArray(awaited) ? awaited : Object.keys(awaited)
    expect(Object.keys(compose.services)).toEqual(expect.arrayContaining(names))
    // A tag that moves would change what is started.
    expect(service.image).toMatch(/^sluice$|:.*\d/)
  })

  it('leaves the service the time to stop, and nothing to write but its volume', () => {
    const service = compose.services['sluice']!
    expect(service.read_only).toBe(true)
    expect(service.volumes).toEqual([`sluice-data:${imageEnvironment()['SLUICE_DATA_DIR']}`])
    const { drainMs } = readSettings({ args: [], environment: environments['compose']!, cores: 1 })
    expect(drainMs + STOP_MS).toBeLessThanOrEqual(seconds(service.stop_grace_period!) * SECOND_MS)
  })

  it('gives Prometheus and Grafana the files of this folder', () => {
    const { prometheus, grafana } = compose.services as Record<'prometheus' | 'grafana', ComposeService>
    expect(prometheus.volumes).toContain('./prometheus:/etc/prometheus:ro')
    const config = readDeployYaml<{
      rule_files: string[]
      scrape_configs: [{ dns_sd_configs: [{ names: string[] }] }]
    }>('prometheus/prometheus.yaml')
    for (const file of config.rule_files) expect(existsSync(deployPath(`prometheus/${file}`))).toBe(true)
    expect(Object.keys(compose.services)).toEqual(
      expect.arrayContaining(config.scrape_configs[0].dns_sd_configs[0].names),
    )
    const provider = readDeployYaml<{ providers: [{ options: { path: string } }] }>(
      'grafana/provisioning/dashboards/sluice.yaml',
    )
    expect(grafana.volumes).toContain(`./grafana/dashboards:${provider.providers[0].options.path}:ro`)
    const { datasources } = readDeployYaml<{ datasources: [{ type: string; url: string }] }>(
      'grafana/provisioning/datasources/prometheus.yaml',
    )
    expect(datasources).toMatchObject([{ type: 'prometheus' }])
    expect(Object.keys(compose.services)).toContain(new URL(datasources[0].url).hostname)
  })
})

describe('the Kubernetes objects', () => {
  it('are those that the kustomization names, of known kinds, in one namespace', () => {
    const { resources, namespace } = readDeployYaml<{ resources: string[]; namespace: string }>(
      'kubernetes/kustomization.yaml',
    )
    const files = resources.flatMap((file) => kubernetesObjects(file))
    // Everything but the example of a secret.
    expect(files).toHaveLength(objects.length - 1)
    expect(objects.map(({ apiVersion, kind }) => `${apiVersion} ${kind}`).sort()).toEqual([
      'apps/v1 Deployment',
      'autoscaling/v2 HorizontalPodAutoscaler',
      'networking.k8s.io/v1 NetworkPolicy',
      'policy/v1 PodDisruptionBudget',
      'v1 ConfigMap',
      'v1 Namespace',
      'v1 Secret',
      'v1 Service',
    ])
    for (const { kind, metadata } of objects) {
      expect(metadata.name).toBe('sluice')
      expect(kind === 'Namespace' ? namespace : metadata.namespace).toBe('sluice')
    }
  })

  it('select the pods of the deployment', () => {
    const labels = deployment.spec.template.metadata.labels
    expect(deployment.spec.selector.matchLabels).toEqual(labels)
    expect(objectOf<{ spec: { selector: Environment } }>('Service').spec.selector).toEqual(labels)
    type Selecting = { spec: { selector?: { matchLabels: Environment }; podSelector?: { matchLabels: Environment } } }
    expect(objectOf<Selecting>('PodDisruptionBudget').spec.selector?.matchLabels).toEqual(labels)
    expect(objectOf<Selecting>('NetworkPolicy').spec.podSelector?.matchLabels).toEqual(labels)
  })

  it('refer to ports, secrets and volumes that exist', () => {
    const { port, admin } = readSettings({ args: [], environment: environments['kubernetes']!, cores: 1 })
    expect(container.ports).toEqual([
      { name: 'http', containerPort: port },
      { name: 'admin', containerPort: admin!.port },
    ])
    expect(deployment.spec.template.metadata.annotations['prometheus.io/port']).toBe(String(admin!.port))
    type Exposing = { spec: { ports: readonly { targetPort: string }[] } }
    expect(objectOf<Exposing>('Service').spec.ports.map(({ targetPort }) => targetPort)).toEqual(['http'])
    type Admitting = { spec: { ingress: readonly { ports: readonly { port: string }[] }[] } }
    expect(objectOf<Admitting>('NetworkPolicy').spec.ingress.map(({ ports }) => ports)).toEqual([
      [{ port: 'http' }],
      [{ port: 'admin' }],
    ])
    const keys = [
      ...container.env.map(({ valueFrom }) => valueFrom.secretKeyRef.key),
      ...pod.volumes.flatMap(({ secret: of }) => of?.items.map(({ key }) => key) ?? []),
    ]
    expect(Object.keys(secret).sort()).toEqual(keys.sort())
    expect(container.volumeMounts.map(({ name }) => name)).toEqual(pod.volumes.map(({ name }) => name))
    const mounted = container.volumeMounts.map(({ mountPath }) => mountPath)
    expect(mounted).toEqual([configMap['SLUICE_DATA_DIR'], dirname(configMap['SLUICE_ADMIN_KEY_FILE']!)])
    // Passwords are in the secret alone.
    const secretNames = Object.values(SETTING_TABLE).flatMap(({ isSecret, variable }) => (isSecret ? [variable] : []))
    expect(Object.keys(configMap).filter((variable) => secretNames.includes(variable))).toEqual([])
  })

  it('probe what the service has, and drain longer than the probe needs to notice', () => {
    const { drainMs } = readSettings({ args: [], environment: environments['kubernetes']!, cores: 1 })
    const { startupProbe, livenessProbe, readinessProbe } = container
    expect([startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => httpGet)).toEqual([
      { path: '/livez', port: 'http' },
      { path: '/livez', port: 'http' },
      { path: '/readyz', port: 'http' },
    ])
    const noticedMs = readinessProbe.periodSeconds * readinessProbe.failureThreshold * SECOND_MS
    expect(drainMs).toBeGreaterThan(noticedMs)
    expect(drainMs + STOP_MS).toBeLessThanOrEqual(pod.terminationGracePeriodSeconds * SECOND_MS)
  })

  it('run without rights on a root filesystem that is not written to', () => {
    expect(pod.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: 65_532,
      seccompProfile: { type: 'RuntimeDefault' },
    })
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
  })
})

describe('the unit and the proxies', () => {
  it('leave the service the time to stop', () => {
    const { drainMs } = readSettings({ args: [], environment: environments['systemd']!, cores: 1 })
    expect(drainMs + STOP_MS).toBeLessThanOrEqual(seconds(unitValues('TimeoutStopSec')[0]!) * SECOND_MS)
  })

  it('wait longer than a call may', () => {
    const [, nginx = ''] = /proxy_read_timeout (\d+s);/.exec(readDeployFile('nginx/sluice.conf')) ?? []
    const [, haproxy = ''] = /timeout server (\d+s)/.exec(readDeployFile('haproxy/haproxy.cfg')) ?? []
    for (const waited of [nginx, haproxy]) expect(seconds(waited) * SECOND_MS).toBeGreaterThan(LONGEST_WAIT_MS)
  })

  it('take the largest body', () => {
    const [, mebibytes] = /client_max_body_size (\d+)m;/.exec(readDeployFile('nginx/sluice.conf')) ?? []
    const largest = Math.max(...Object.values(OPERATIONS).map(({ maxBodyBytes }) => maxBodyBytes))
    expect(Number(mebibytes) * 1_048_576).toBe(largest)
  })
})

describe('the alerts of Prometheus', () => {
  const alerts = prometheusRules('alerts.yaml')
  const recorded = new Map(prometheusRules('rules.yaml').map(({ record = '', expr }) => [record, expr]))

  it('are the built-in ones of nodes that share Redis and a database, with their thresholds and times', () => {
    const shared = { databaseUrl: 'postgres://', redis: { prefix: '' }, nodeId: 'a' }
    const conditions = (['database', 'redis'] as const).flatMap((by) => conditionsThrough(by, alertRules(), shared))
    const expected = conditions.map(({ rule, scope, coveredBy }) => ({
      name: rule.name,
      scope,
      isCovered: coveredBy !== undefined,
      above: rule.unit === 'ms' ? rule.threshold / SECOND_MS : rule.threshold,
      forSeconds: rule.forMs / SECOND_MS,
      resolveAfterSeconds: rule.resolveAfterMs / SECOND_MS,
      leastSamples: rule.leastSamples,
    }))
    const found = alerts.flatMap(({ expr, labels, ...alert }) => {
      if (labels?.['rule'] === undefined) return []
      const [own = '', ofAll] = expr.split('unless on (job)')
      // What covers it is the whole condition of the alert over all nodes.
      if (ofAll !== undefined) expect(bare(ofAll)).toBe(bare(own).replaceAll('instance:', 'job:'))
      return [
        {
          name: labels['rule'],
          scope: labels['scope'],
          isCovered: ofAll !== undefined,
          above: Number(/> ([\d.]+)/.exec(own)?.[1]),
          forSeconds: seconds(alert.for!),
          resolveAfterSeconds: seconds(alert.keep_firing_for!),
          leastSamples: Number(/>= (\d+)/.exec(own)?.[1] ?? 0),
        },
      ]
    })
    expect(found).toEqual(expected)
  })

  it('measure over the windows of the built-in ones, each over the nodes that its scope says', () => {
    const windows = new Map(alertRules().map(({ name, windowMs }) => [name as string, windowMs]))
    for (const { expr, labels } of alerts) {
      const windowMs = windows.get(labels?.['rule'] ?? '') ?? 0
      if (windowMs === 0) continue
      const [own = ''] = expr.split('unless on (job)')
      const level = labels?.['scope'] === 'cluster' ? 'job' : 'instance'
      const names = own.match(/\w+:\w+:\w+/g) ?? []
      expect(names.map((record) => record.split(':')[0])).toEqual([level, level])
      for (const record of names) {
        const recordedAs = recorded.get(record)!
        const ranges = recordedAs.match(/\[\w+\]/g) ?? []
        expect(new Set(ranges)).toEqual(new Set([`[${windowMs / SECOND_MS / 60}m]`]))
        const labelsKept = [...recordedAs.matchAll(/sum by \(([^)]*)\)/g)].map(([, list]) => list!.replace(', le', ''))
        expect(new Set(labelsKept)).toEqual(new Set([level === 'job' ? 'job' : 'job, instance']))
      }
    }
  })
})

/** An expression without spaces and the parentheses around it. */
function bare(expression: string): string {
  return expression
    .replaceAll(/\s+/g, ' ')
    .trim()
    .replace(/^\((.*)\)$/, '$1')
}

describe.each(dashboards())('the dashboard %s', (file, { uid, links, panels, templating }) => {
  it('has panels of its own that do not cover each other', () => {
    expect(file).toBe(`${uid}.json`)
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    const covered = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
    )
    expect(new Set(covered).size).toBe(covered.length)
    expect(Math.max(...panels.map(({ gridPos: { x, w } }) => x + w))).toBe(24)
  })

  it('uses variables that it declares, and leads to the top callers', () => {
    const declared = new Set(templating.list.map(({ name }) => name))
    const used = JSON.stringify(panels).match(/\$\{?(?!__|SLUICE_)(\w+)/g) ?? []
    expect(used.filter((name) => !declared.has(name.replace(/\$\{?/, '')))).toEqual([])
    // Where a browser can sign in; GET /admin/top needs an API key in a header, which a link does not have.
    expect(links).toContainEqual(expect.objectContaining({ title: 'Top callers', url: '${sluice}/' }))
  })
})
