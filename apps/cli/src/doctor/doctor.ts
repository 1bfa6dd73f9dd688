import type { Settings } from '@sluice/service/settings'
import type { Command, CommandContext, Flags, GivenFlags } from '../command-line/command.ts'
import { command, flag, toggle } from '../command-line/command.ts'
import { checkRules } from '../files/config-file.ts'
import { EXIT_CODES, problemText, usageError } from '../output/cli-error.ts'
import type { Paint } from '../output/terminal.ts'
import { countOf } from '../output/text.ts'
import { inspectDatabase } from './database-check.ts'
import type { Finding, FindingStatus } from './finding.ts'
import { failed, ok, skipped, warning } from './finding.ts'
import { nodeFinding, portFinding } from './machine-check.ts'
import { redisFindings } from './redis-check.ts'
import { serviceFindings } from './service-check.ts'

const FLAGS = {
  config: flag('text', '<file>', 'Configuration file of the service. Default: SLUICE_CONFIG.'),
  'redis-url': flag('text', '<url,...>', 'Redis of the service. Default: REDIS_URL, or the file.'),
  'redis-cluster': toggle('The URLs are nodes of a cluster.'),
  'redis-sentinel': flag('text', '<name>', 'The URLs are sentinels that know the server under this name.'),
  'database-url': flag('text', '<url>', 'PostgreSQL database of the service. Default: DATABASE_URL, or the file.'),
  'data-dir': flag('text', '<folder>', 'Data folder of the service. Default: SLUICE_DATA_DIR, the file, or .sluice.'),
  host: flag('text', '<address>', 'Address that the service listens on. Default: HOST, the file, or 127.0.0.1.'),
  port: flag('whole', '<number>', 'Port that the service listens on. Default: PORT, the file, or 8080.'),
  'admin-host': flag('text', '<address>', 'Address of the admin API. Default: ADMIN_HOST, the file, or --host.'),
  'admin-port': flag('whole', '<number>', 'Port of the admin API. Default: ADMIN_PORT, the file, or --port.'),
} as const satisfies Flags

const HIGHEST_PORT = 65_535

export const doctorCommand: Command = command({
  name: 'doctor',
  summary: 'Diagnose an installation',
  description:
    'Reads the settings like the service: flags, then the environment, then the file. Checks Node, the rules file, ' +
    'the port, the data folder, Redis (sentinels, version, role, eviction, clock), PostgreSQL (version, tables, ' +
    'clock) and the service (readiness, clock, API key), and says how to fix each problem. Without --url and ' +
    'SLUICE_URL it uses the address in the settings. Read-only; needs no running service. Exits with 1 if a check ' +
    'fails. With --json: findings with check, status (ok, warning, failed, skipped), found and advice.',
  args: {},
  flags: FLAGS,
  examples: ['doctor', 'doctor --redis-url redis://127.0.0.1:6379 --json'],
  asksService: true,
  run: async ({ flags }, context) => {
    for (const name of ['port', 'admin-port'] as const) {
      const { [name]: port = 0 } = flags
      if (port > HIGHEST_PORT) throw usageError(`--${name} got ${port}; expected 0 to ${HIGHEST_PORT}.`)
    }
    const findings = await findingsFor(flags, context)
    const hasFailed = findings.some(({ status }) => status === 'failed')
    return {
      value: { findings },
      text: findingsText(findings),
      decorate: (text, paint) =>
        text.replaceAll(STATUS_WORD, (word, first?: FindingStatus, counted?: FindingStatus) =>
          COLOURS[first ?? counted ?? 'ok'](paint)(word),
        ),
      exitCode: hasFailed ? EXIT_CODES.failed : EXIT_CODES.ok,
    }
  },
})

async function findingsFor(flags: GivenFlags<typeof FLAGS>, context: CommandContext): Promise<readonly Finding[]> {
  const { environment, nodeVersion } = context
  // Loaded on demand: other commands do not need it.
  const { readSettings, adminOriginOf } = await import('@sluice/service/settings')
  let settings: Settings
  try {
    settings = readSettings({ args: argsOf(flags), environment: environment.variables })
  } catch (error) {
    return [nodeFinding(nodeVersion), settingProblem(error), ...(await serviceFindings(context)).findings]
  }
  // With port 0 the service picks a port when it starts.
  const isKnown = !context.isUrlGiven && (settings.admin ?? settings).port !== 0
  const service = isKnown ? context.at(adminOriginOf(settings)) : context
  return [nodeFinding(nodeVersion), ...(await settingsFindings(settings, service, context))]
}

/** The flags as arguments of the service. */
function argsOf(flags: GivenFlags<typeof FLAGS>): readonly string[] {
  return Object.keys(FLAGS).flatMap((name) => {
    const value = flags[name as keyof typeof FLAGS]
    if (value === undefined || value === false) return []
    return [value === true ? `--${name}` : `--${name}=${value}`]
  })
}

/** Finding for an error of `readSettings`. */
function settingProblem(error: unknown): Finding {
  const { code, received, expected } = error as Partial<Record<'code' | 'received' | 'expected', string>>
  if (code !== 'SLUICE_SERVICE_INVALID_SETTING') throw error
  return failed(
    'settings',
    `received ${received}; expected ${expected}`,
    'Correct it: the service does not start with it.',
  )
}

/** Checks the rules file; no finding if the rules come from a database. */
async function rulesFindings(settings: Settings): Promise<readonly Finding[]> {
  const rulesFile = settings.rulesFile ?? settings.gateway?.file
  if (rulesFile === undefined) return []
  const { rules, problems, warnings } = await checkRules(settings)
  const [first, ...others] = problems
  if (first === undefined) {
    const advice = 'Correct it, or list it under "dimensions". Until then such rules may match no request.'
    const dubious = warnings.map((text) => warning('rules', `${rulesFile}: ${text}`, advice))
    return [ok('rules', `${rulesFile} has ${countOf(rules, 'rule')}`), ...dubious]
  }
  const more = others.length === 0 ? '' : `; and ${others.length} more`
  const advice =
    'Correct the file: the service does not start with it. "sluice rules validate ' +
    `${rulesFile}" lists all problems.`
  return [failed('rules', `${rulesFile}: ${problemText(first)}${more}`, advice)]
}

async function settingsFindings(
  settings: Settings,
  { url, client }: Pick<CommandContext, 'url' | 'client'>,
  { progress, hasKey, nowMs, wait }: CommandContext,
): Promise<readonly Finding[]> {
  const { host, port, admin, gateway, dataDir, redis, databaseUrl } = settings
  progress.say(`asking ${url}`)
  const service = await serviceFindings({ client, url, hasKey, nowMs })
  const isOurs = service.isThere && [port, admin?.port].includes(portOf(url))
  const findings: Finding[] = [
    ...(await rulesFindings(settings)),
    await portFinding({ host, port, isOurs, variables: { port: 'PORT', host: 'HOST' } }),
  ]
  if (admin !== undefined) {
    const variables = { port: 'ADMIN_PORT', host: 'ADMIN_HOST' }
    findings.push(await portFinding({ host: admin.host ?? host, port: admin.port, isOurs, variables }))
  }
  if (gateway !== undefined) {
    const variables = { port: 'SLUICE_GATEWAY_PORT', host: 'SLUICE_GATEWAY_HOST' }
    findings.push(await portFinding({ host: gateway.host ?? host, port: gateway.port, isOurs, variables }))
  }
  progress.say('inspecting the database')
  findings.push(...(await inspectDatabase({ dataDir, databaseUrl, nowMs, wait })))
  progress.say('asking Redis')
  if (redis === undefined) findings.push(skipped('redis', 'not set: counters are in the memory of the service'))
  else findings.push(...(await redisFindings(redis, { nowMs, wait })))
  return [...findings, ...service.findings]
}

function portOf(url: string): number {
  const { port, protocol } = new URL(url)
  return port === '' ? DEFAULT_PORTS[protocol]! : Number(port)
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 }

/** The status of a finding, or its count in the last line. */
const STATUS_WORD = /^(failed|warning|ok|skipped)\b|^(?:0 failed, )?[1-9]\d* (failed|warning)\b/gm

const COLOURS: Readonly<Record<FindingStatus, (paint: Paint) => Paint['red']>> = {
  failed: ({ red }) => red,
  warning: ({ yellow }) => yellow,
  ok: ({ green }) => green,
  skipped: ({ dim }) => dim,
}

const STATUS_ORDER: readonly FindingStatus[] = ['failed', 'warning', 'ok', 'skipped']

function findingsText(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ check }) => check.length))
  const lines = findings.flatMap(({ check, status, found, advice }) => [
    `${status.padEnd(7)}  ${check.padEnd(width)}  ${found}`,
    ...(advice === null ? [] : [`${' '.repeat(9)}${' '.repeat(width)}  -> ${advice}`]),
  ])
  const counts = STATUS_ORDER.map((status) => `${findings.filter((each) => each.status === status).length} ${status}`)
  return [...lines, '', counts.join(', ')].join('\n')
}
