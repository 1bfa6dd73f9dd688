import { usageError } from '../cli-error.ts'
import type { Command, CommandContext } from '../command.ts'
import { command } from '../command.ts'
import { dataFolderFindings } from '../doctor/data-folder-check.ts'
import type { Finding, FindingStatus } from '../doctor/finding.ts'
import { skipped } from '../doctor/finding.ts'
import { nodeFinding } from '../doctor/node-check.ts'
import { portFinding } from '../doctor/port-check.ts'
import { postgresFindings } from '../doctor/postgres-check.ts'
import { redisFindings } from '../doctor/redis-check.ts'
import { serviceFindings } from '../doctor/service-check.ts'
import { EXIT_CODES } from '../exit-code.ts'
import type { Flags, GivenFlags } from '../parsing/flag.ts'
import { flag } from '../parsing/flag.ts'
import { shown } from '../parsing/shown.ts'

const FLAGS = {
  'redis-url': flag('text', '<url,...>', 'The Redis of the service. REDIS_URL when left out.'),
  'database-url': flag('text', '<url>', 'The PostgreSQL database of the service. DATABASE_URL when left out.'),
  'data-dir': flag('text', '<folder>', 'The data folder of the service. SLUICE_DATA_DIR, else .sluice, when left out.'),
  host: flag('text', '<address>', 'The address that the service listens on. HOST, else 127.0.0.1, when left out.'),
  port: flag('whole', '<number>', 'The port that it listens on. PORT, else 8080, when left out.'),
} as const satisfies Flags

/** Looks for what is wrong with an installation. */
export const doctorCommand: Command = command({
  name: 'doctor',
  summary: 'Look for what is wrong with an installation',
  description:
    'Looks at Node, the port, the data folder, Redis (version, role, eviction, clock), PostgreSQL (version, tables, clock) and the service (ready, clock, API key), and says what to do about what is not as it should be. Changes nothing, and needs no running service. Ends with 1 when something does not work. With --json: findings with check, status (ok, warning, failed, skipped), found and advice.',
  args: {},
  flags: FLAGS,
  examples: ['doctor', 'doctor --redis-url redis://127.0.0.1:6379 --json'],
  asksService: true,
  run: async ({ flags }, context) => {
    const findings = await examine(flags, context)
    const hasFailed = findings.some(({ status }) => status === 'failed')
    return {
      value: { findings },
      text: findingsText(findings),
      exitCode: hasFailed ? EXIT_CODES.failed : EXIT_CODES.ok,
    }
  },
})

async function examine(flags: GivenFlags<typeof FLAGS>, context: CommandContext): Promise<readonly Finding[]> {
  const { environment, progress, url, client, hasKey, nowMs, wait, nodeVersion } = context
  const redisUrl = flags['redis-url'] ?? environment.redisUrl
  const databaseUrl = flags['database-url'] ?? environment.databaseUrl
  const host = flags.host ?? environment.host ?? '127.0.0.1'
  const port = portOf(flags.port, environment.port)
  progress.say(`asking ${url}`)
  const service = await serviceFindings({ client, url, hasKey, nowMs })
  const isOurs = service.isThere && new URL(url).port === String(port)
  const findings: Finding[] = [nodeFinding(nodeVersion), await portFinding({ host, port, isOurs })]
  findings.push(...(await dataFolderFindings(flags['data-dir'] ?? environment.dataDir ?? '.sluice')))
  progress.say('asking Redis')
  for (const each of redisUrl?.split(',') ?? []) findings.push(...(await redisFindings({ url: each, nowMs, wait })))
  if (redisUrl === undefined) findings.push(skipped('redis', 'REDIS_URL is not set: counters live in the service'))
  progress.say('asking PostgreSQL')
  if (databaseUrl !== undefined) findings.push(...(await postgresFindings({ url: databaseUrl, nowMs, wait })))
  return [...findings, ...service.findings]
}

function portOf(given: number | undefined, variable: string | undefined): number {
  const port = given ?? Number(variable ?? 8080)
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port
  throw usageError(`The port is ${shown(variable ?? String(given))}; expected a whole number from 0 to 65535.`)
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
