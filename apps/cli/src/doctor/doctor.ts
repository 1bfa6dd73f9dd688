import type { Settings } from '@sluice/service/settings'
import type { Flags, GivenFlags } from '../command-line/arguments.ts'
import { flag, toggle } from '../command-line/arguments.ts'
import type { Command, CommandContext } from '../command-line/command.ts'
import { command } from '../command-line/command.ts'
import { checkRules } from '../files/config-file.ts'
import { EXIT_CODES, problemText, usageError } from '../output/cli-error.ts'
import type { Paint } from '../output/terminal.ts'
import { countOf } from '../output/text.ts'
import { dataFolderFindings, postgresFindings } from './database-check.ts'
import type { Finding, FindingStatus } from './finding.ts'
import { failed, ok, skipped } from './finding.ts'
import { nodeFinding, portFinding } from './machine-check.ts'
import { redisSetupFindings } from './redis-check.ts'
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
} as const satisfies Flags

const HIGHEST_PORT = 65_535

/** Diagnoses an installation. */
export const doctorCommand: Command = command({
  name: 'doctor',
  summary: 'Diagnose an installation',
  description:
    'Reads the settings of the service as the service does: flags, else the environment, else the file. Looks at Node, the rules file, the port, the data folder, Redis (sentinels, version, role, eviction, clock), PostgreSQL (version, tables, clock) and the service (ready, clock, API key), and says what to do about what is not as it should be. Without --url and SLUICE_URL the service is looked for where the settings say that it listens. Changes nothing, and needs no running service. Ends with 1 when something does not work. With --json: findings with check, status (ok, warning, failed, skipped), found and advice.',
  args: {},
  flags: FLAGS,
  examples: ['doctor', 'doctor --redis-url redis://127.0.0.1:6379 --json'],
  asksService: true,
  run: async ({ flags }, context) => {
    const { port = 0 } = flags
    if (port > HIGHEST_PORT) throw usageError(`--port got ${port}; expected 0 to ${HIGHEST_PORT}.`)
    const findings = await examine(flags, context)
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

async function examine(flags: GivenFlags<typeof FLAGS>, context: CommandContext): Promise<readonly Finding[]> {
  const { environment, nodeVersion } = context
  // Loaded only when needed: no other command has to do with it.
  const { readSettings, originOf } = await import('@sluice/service/settings')
  let settings: Settings
  try {
    settings = readSettings({ args: argsOf(flags), environment: environment.variables })
  } catch (error) {
    return [nodeFinding(nodeVersion), settingProblem(error), ...(await serviceFindings(context)).findings]
  }
  // A port that is found at the start says nothing about where the service is.
  const isKnown = !context.isUrlGiven && settings.port !== 0
  const service = isKnown ? context.at(originOf(settings)) : context
  return [nodeFinding(nodeVersion), ...(await settingsFindings(settings, service, context))]
}

/** The flags as the service takes them. */
function argsOf(flags: GivenFlags<typeof FLAGS>): readonly string[] {
  return Object.keys(FLAGS).flatMap((name) => {
    const value = flags[name as keyof typeof FLAGS]
    if (value === undefined || value === false) return []
    return [value === true ? `--${name}` : `--${name}=${value}`]
  })
}

/** What is wrong with the settings, going by what reading them threw. */
function settingProblem(error: unknown): Finding {
  const { code, received, expected } = error as Partial<Record<'code' | 'received' | 'expected', string>>
  if (code !== 'SLUICE_SERVICE_INVALID_SETTING') throw error
  return failed('settings', `received ${received}; expected ${expected}`, 'Correct it: the service does not start so.')
}

/** Whether the service can use its rules file; nothing when its rules come from a database. */
async function rulesFindings(settings: Settings): Promise<readonly Finding[]> {
  const { rulesFile } = settings
  if (rulesFile === undefined) return []
  const { rules, problems } = await checkRules(settings)
  const [first, ...others] = problems
  if (first === undefined) return [ok('rules', `${rulesFile} has ${countOf(rules, 'rule')}`)]
  const more = others.length === 0 ? '' : `; and ${others.length} more`
  const advice = `Correct the file: the service does not start with it. "sluice rules validate ${rulesFile}" lists all problems.`
  return [failed('rules', `${rulesFile}: ${problemText(first)}${more}`, advice)]
}

async function settingsFindings(
  settings: Settings,
  { url, client }: Pick<CommandContext, 'url' | 'client'>,
  { progress, hasKey, nowMs, wait }: CommandContext,
): Promise<readonly Finding[]> {
  const { host, port, dataDir, redis, databaseUrl } = settings
  progress.say(`asking ${url}`)
  const service = await serviceFindings({ client, url, hasKey, nowMs })
  const isOurs = service.isThere && portOf(url) === port
  const findings: Finding[] = [
    ...(await rulesFindings(settings)),
    await portFinding({ host, port, isOurs }),
    ...(await dataFolderFindings(dataDir)),
  ]
  progress.say('asking Redis')
  if (redis === undefined) findings.push(skipped('redis', 'none is set: counters live in the service'))
  else findings.push(...(await redisSetupFindings(redis, { nowMs, wait })))
  progress.say('asking PostgreSQL')
  if (databaseUrl !== undefined) findings.push(...(await postgresFindings({ url: databaseUrl, nowMs, wait })))
  return [...findings, ...service.findings]
}

function portOf(url: string): number {
  const { port, protocol } = new URL(url)
  return port === '' ? USUAL_PORTS[protocol]! : Number(port)
}

const USUAL_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 }

/** The word before a finding, or its count at the end. */
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
