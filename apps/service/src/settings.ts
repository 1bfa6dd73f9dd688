import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import type { HeaderProfile } from '@sluice/contract'
import type { FailureMode } from '@sluice/core'
import { parseCidr, parseIp } from '@sluice/core/internal'
import type { LogLevel } from '@sluice/runtime'
import type { AlertOptions } from './alert-settings.ts'
import { ServiceError } from './service-error.ts'
import type { GivenSettings, SettingProblem } from './setting-sources.ts'
import { settingsOfEnvironment, settingsOfFile, settingsOfFlags } from './setting-sources.ts'
import { DEFAULT_DENIED_TARGETS, SETTING_TABLE } from './setting-table.ts'

export { SERVICE_PART_SCHEMA } from './setting-sources.ts'

/** How the process is told to run; each is explained by `--help`. */
export interface Settings {
  readonly host: string
  /** 0 to 65535, 0 for any free one. */
  readonly port: number
  readonly dataDir: string
  /** The file that rules come from; undefined when they come from a database. */
  readonly rulesFile: string | undefined
  /** What stood under `service` in the configuration file; empty when there was nothing, or no file. */
  readonly fileSettings: GivenSettings
  /** Undefined when counters live in this process. */
  readonly redis: RedisSettings | undefined
  /** Undefined when configuration is kept in the data folder. */
  readonly databaseUrl: string | undefined
  readonly threads: number
  readonly maxKeys: number
  readonly stateSize: number
  /** Checks that a thread has under way at most. */
  readonly maxInFlight: number
  /** Networks whose connections are not limited and that no penalty blocks, each as CIDR or single address. */
  readonly trustedProxies: readonly string[]
  /** Whether requests that no rule matches are limited. */
  readonly defaultLimit: boolean
  /** Open connections from one address to a thread at most. */
  readonly maxConnectionsPerAddress: number
  /** Host headers that are answered, as the setting has them. */
  readonly allowedHosts: readonly string[]
  readonly headers: HeaderProfile
  /** `Retry-After` is longer than the wait by up to so much of it: 0 to 1. */
  readonly retryJitter: number
  /** Whether the check API requires a key. */
  readonly checkKey: boolean
  /** File of the first API key; undefined when it is printed. */
  readonly adminKeyFile: string | undefined
  readonly logLevel: LogLevel | 'off'
  /** Of the first thread, 0 to 1023; undefined when it is to be found out. */
  readonly machine: number | undefined
  readonly region: string | undefined
  readonly otlpEndpoint: string | undefined
  readonly alerts: AlertSettings
  /** Where changes of blocks are sent. */
  readonly blockWebhooks: readonly string[]
  readonly webhooks: WebhookSettings
  readonly drainMs: number
}

/** Which Redis, and how it is used. */
export interface RedisSettings {
  readonly urls: readonly string[]
  readonly isCluster: boolean
  readonly sentinel: string | undefined
  readonly prefix: string
  readonly leases: boolean
  readonly failureMode: FailureMode
  /** How long a check waits for Redis, in milliseconds. */
  readonly deadlineMs: number
}

/** What alerts are about, and where they are sent to. */
export interface AlertSettings {
  readonly options: AlertOptions
  readonly webhooks: readonly string[]
}

/** How webhooks are sent. */
export interface WebhookSettings {
  /** `whsec_` and base64, the current one first. Webhooks are not signed when there is none. */
  readonly secrets: readonly string[]
  /** Networks that webhooks are never sent to, each as CIDR or single address. */
  readonly deniedTargets: readonly string[]
}

/** Names and values of environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Where settings are read from. */
export interface SettingSources {
  /** Command-line arguments. Default: those of this process. */
  readonly args?: readonly string[]
  /** Default: the environment of this process. */
  readonly environment?: Environment
  /** The content of a file; throws when it cannot be read. */
  readonly readFile?: (path: string) => string
  /** Cores of this machine, for `auto`. */
  readonly cores?: number
}

/**
 * The settings: what a flag says, else what the environment says, else what stands in the configuration file that one of the two
 * names, else the default. A variable that is set to nothing counts as left out. Throws `SLUICE_SERVICE_INVALID_SETTING` that
 * names everything that cannot be used.
 */
export function readSettings(sources: SettingSources = {}): Settings {
  const { args = process.argv.slice(2), environment = process.env, cores = availableParallelism() } = sources
  const { readFile = (path) => readFileSync(path, 'utf8') } = sources
  const problems: SettingProblem[] = []
  const outer = { ...settingsOfEnvironment(environment, problems), ...settingsOfFlags(args, problems) }
  const file = outer.config === undefined ? undefined : settingsOfFile(outer.config, readFile, problems)
  const given: GivenSettings = { ...file?.settings, ...outer }
  // What goes with what can only be said of settings that could be read.
  if (problems.length === 0) problems.push(...redisProblems(given), ...networkProblems(given))
  if (problems.length > 0) throw invalidSettings(problems)
  return { ...completed(given, { cores, hasRules: file?.hasRules === true }), fileSettings: file?.settings ?? {} }
}

/** The address at which this machine reaches a service with these settings. `port`: where it listens, when that is known better. */
export function originOf({ host, port: usual }: Pick<Settings, 'host' | 'port'>, port: number = usual): string {
  return `http://${reachable(host)}:${port}`
}

/** Whether only this machine can reach a service that listens on `host`. A name other than localhost may resolve to anything. */
export function isLoopback(host: string): boolean {
  if (host.toLowerCase() === 'localhost') return true
  const address = parseIp(host)
  if (address === undefined) return false
  return address.isIpv4 ? address.word3 >>> 24 === 127 : address.toString() === '::1'
}

/** The items of a setting that takes several, with commas between. */
function listOf(text: string | undefined): readonly string[] {
  return text?.split(',') ?? []
}

/** The host to put into an address: one that stands for all addresses is not itself one to connect to. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}

function completed(
  given: GivenSettings,
  { cores, hasRules }: { cores: number; hasRules: boolean },
): Omit<Settings, 'fileSettings'> {
  const host = given.host ?? '127.0.0.1'
  return {
    host,
    port: given.port ?? 8080,
    dataDir: given.dataDir ?? '.sluice',
    rulesFile: hasRules ? given.config : undefined,
    redis: redisOf(given),
    databaseUrl: given.databaseUrl,
    threads: given.threads === 'auto' ? cores : (given.threads ?? 1),
    maxKeys: given.maxKeys ?? 250_000,
    stateSize: given.stateSize ?? 64,
    // More than this only wait for each other.
    maxInFlight: given.maxInFlight ?? 5000,
    trustedProxies: listOf(given.trustedProxies),
    defaultLimit: given.defaultLimit ?? false,
    maxConnectionsPerAddress: given.maxConnectionsPerAddress ?? 1000,
    allowedHosts: listOf(given.allowedHosts),
    headers: given.headers ?? 'legacy',
    retryJitter: (given.retryJitter ?? 0) / 100,
    checkKey: given.checkKey ?? !isLoopback(host),
    adminKeyFile: given.adminKeyFile,
    logLevel: given.logLevel ?? 'warn',
    machine: given.machine,
    region: given.region,
    otlpEndpoint: given.otlpEndpoint,
    alerts: { options: given.alerts ?? {}, webhooks: listOf(given.alertWebhooks) },
    blockWebhooks: listOf(given.blockWebhooks),
    webhooks: { secrets: listOf(given.webhookSecret), deniedTargets: deniedTargetsOf(given) },
    drainMs: given.drainMs ?? 3000,
  }
}

/** Settings that need a Redis URL. The failure mode does not: counters in memory are always available. */
const OF_REDIS = ['redisCluster', 'redisSentinel', 'redisPrefix', 'leases', 'storeDeadlineMs'] as const

/** What is said about Redis and cannot hold. */
function redisProblems(given: GivenSettings): readonly SettingProblem[] {
  if (given.redisUrl === undefined) {
    const said = OF_REDIS.filter((name) => given[name] !== undefined && given[name] !== false)
    if (said.length === 0) return []
    const flags = said.map((name) => `--${SETTING_TABLE[name].flag}`).join(', ')
    return [{ received: `${flags} without the address of a Redis`, expected: '--redis-url as well' }]
  }
  const isBoth = given.redisCluster === true && given.redisSentinel !== undefined
  return isBoth ? [{ received: 'both a cluster and sentinels of Redis', expected: 'one of them' }] : []
}

function deniedTargetsOf({ webhookDenyList = DEFAULT_DENIED_TARGETS }: GivenSettings): readonly string[] {
  return webhookDenyList === 'none' ? [] : webhookDenyList.split(',')
}

function networkProblems(given: GivenSettings): readonly SettingProblem[] {
  const lists = [
    [SETTING_TABLE.webhookDenyList, deniedTargetsOf(given)],
    [SETTING_TABLE.trustedProxies, listOf(given.trustedProxies)],
  ] as const
  return lists.flatMap(([{ flag }, networks]) =>
    networks.flatMap((network) => {
      const cidr = parseCidr(network)
      if (!('problem' in cidr)) return []
      return [{ received: `${network} in --${flag}`, expected: `networks there, but ${cidr.problem}` }]
    }),
  )
}

function redisOf(given: GivenSettings): RedisSettings | undefined {
  if (given.redisUrl === undefined) return undefined
  return {
    urls: given.redisUrl.split(','),
    isCluster: given.redisCluster ?? false,
    sentinel: given.redisSentinel,
    prefix: given.redisPrefix ?? 'sluice',
    leases: given.leases ?? false,
    failureMode: given.failureMode ?? 'open',
    deadlineMs: given.storeDeadlineMs ?? 50,
  }
}

function invalidSettings(problems: readonly SettingProblem[]): ServiceError {
  return new ServiceError('SLUICE_SERVICE_INVALID_SETTING', {
    received: problems.map(({ received }) => received).join(' and '),
    expected: problems.map(({ expected }) => expected).join(' and '),
    action: 'Correct or remove it: every setting has a default. --help lists all settings.',
    problems,
  })
}
