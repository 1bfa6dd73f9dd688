import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import type { HeaderProfile } from '@sluice/contract'
import type { FailureMode } from '@sluice/core'
import { parseCidr, parseIp } from '@sluice/core/internal'
import type { LogLevel } from '@sluice/runtime'
import { ServiceError } from '../service-error.ts'
import type { AlertOptions } from './alert-settings.ts'
import type { GivenSettings, SettingProblem } from './flags-environment-file.ts'
import { settingsOfEnvironment, settingsOfFile, settingsOfFlags } from './flags-environment-file.ts'
import type { GrpcStoreFailure, SettingName } from './setting-table.ts'
import { DEFAULT_DENIED_TARGETS, SETTING_TABLE } from './setting-table.ts'

export { SERVICE_PART_SCHEMA } from './flags-environment-file.ts'

/** The settings of the process; `--help` explains each. */
export interface Settings {
  readonly host: string
  /** 0 to 65535; 0: any free port. */
  readonly port: number
  /** TLS of the HTTP listeners; undefined: plain text. */
  readonly httpTls: TlsSettings | undefined
  /** The HTTP listener of the admin API; undefined: one listener serves all. */
  readonly admin: ListenerAddress | undefined
  /** The Redis protocol listener; undefined: off. */
  readonly resp: ListenerSettings | undefined
  /** The gRPC listener; undefined: off. */
  readonly grpc: GrpcSettings | undefined
  /** The gateway; undefined: off. */
  readonly gateway: GatewaySettings | undefined
  readonly dataDir: string
  /** Undefined if rules come from a database. */
  readonly rulesFile: string | undefined
  /** The `service` part of the configuration file; empty without one. */
  readonly fileSettings: GivenSettings
  /** Undefined: counters are in memory. */
  readonly redis: RedisSettings | undefined
  /** Undefined: configuration is in the data folder. */
  readonly databaseUrl: string | undefined
  readonly threads: number
  readonly maxKeys: number
  readonly stateSize: number
  /** Maximum number of in-flight checks per thread. */
  readonly maxInFlight: number
  /** Maximum number of different limits that `CL.THROTTLE` can name, per thread. */
  readonly maxAdHocLimits: number
  /** Networks (CIDR or address) whose connections are not limited and that no penalty blocks. */
  readonly trustedProxies: readonly string[]
  /** Headers of forward authentication by the field that they name. */
  readonly forwardAuthIdentity: Readonly<Record<string, string>>
  /** Whether requests that no rule matches are limited. */
  readonly defaultLimit: boolean
  /** Maximum number of open connections from one address to a thread. */
  readonly maxConnectionsPerAddress: number
  /** Accepted host headers. */
  readonly allowedHosts: readonly string[]
  readonly headers: HeaderProfile
  /** Maximum random increase of `Retry-After`, as a share of it: 0 to 1. */
  readonly retryJitter: number
  /** Whether the check API requires a key. */
  readonly checkKey: boolean
  /** File of the first API key; undefined: the key is printed. */
  readonly adminKeyFile: string | undefined
  readonly logLevel: LogLevel | 'off'
  /** Machine number of the first thread, 0 to 1023; undefined: leased automatically. */
  readonly machine: number | undefined
  readonly region: string | undefined
  readonly otlpEndpoint: string | undefined
  readonly alerts: AlertSettings
  /** URLs that get block changes. */
  readonly blockWebhooks: readonly string[]
  readonly webhooks: WebhookSettings
  readonly drainMs: number
  /** Whether the dashboard is served. */
  readonly dashboard: boolean
  /** Path of its cookie where no trusted proxy names one. */
  readonly basePath: string
}

/** Where a listener that can be turned off listens, and who may use it. */
export interface ListenerAddress {
  /** 0: any free port. */
  readonly port: number
  /** Default: that of HTTP. */
  readonly host?: string
  /** Whether its checks require a key. Default: as those of HTTP. */
  readonly checkKey?: boolean
}

/** The settings of a listener that can be turned off. */
export interface ListenerSettings extends ListenerAddress {
  /** Undefined: plain text. */
  readonly tls: TlsSettings | undefined
}

/** The settings of the gRPC listener. */
export interface GrpcSettings extends ListenerSettings {
  /** How long a call waits for the store, in milliseconds. */
  readonly deadlineMs: number
  /** What calls get that were decided without the store. Default: `mode`. */
  readonly storeFailure?: GrpcStoreFailure
}

/** The settings of the gateway. Its TLS, routes and upstreams are in the configuration file. */
export interface GatewaySettings extends Pick<ListenerAddress, 'port' | 'host'> {
  /** Whether the file had routes at the start. Without, a demo upstream answers. */
  readonly hasRoutes: boolean
  /** Whether it has certificates, so that clients use https. */
  readonly isTls: boolean
  /** The file with its routes if that has no rules. Default: the rules file. */
  readonly file?: string
}

/** What the configuration file says to the gateway's settings. */
type GatewayFileSettings = Pick<GatewaySettings, 'hasRoutes' | 'isTls' | 'file'>

/** Paths of PEM files. */
export interface TlsSettings {
  readonly cert: string
  readonly key: string
  /** Issuers of client certificates. If set, every client needs a certificate of one of them. */
  readonly clientCa: string | undefined
}

/** Settings of Redis. */
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

/** Settings of alerts. */
export interface AlertSettings {
  readonly options: AlertOptions
  readonly webhooks: readonly string[]
}

/** Settings of webhooks. */
export interface WebhookSettings {
  /** `whsec_` and base64, the current one first. Without any, webhooks are not signed. */
  readonly secrets: readonly string[]
  /** Networks (CIDR or address) that webhooks are never sent to. */
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
  /** Returns the content of a file; throws if it cannot be read. */
  readonly readFile?: (path: string) => string
  /** Number of CPU cores, for `auto`. */
  readonly cores?: number
}

/**
 * Reads the settings. Precedence: flag, environment variable, configuration file, default. An empty variable counts as
 * unset. Throws `SLUICE_SERVICE_INVALID_SETTING` with all problems.
 */
export function readSettings(sources: SettingSources = {}): Settings {
  const { args = process.argv.slice(2), environment = process.env, cores = availableParallelism() } = sources
  const { readFile = (path) => readFileSync(path, 'utf8') } = sources
  const problems: SettingProblem[] = []
  const outer = { ...settingsOfEnvironment(environment, problems), ...settingsOfFlags(args, problems) }
  const file = outer.config === undefined ? undefined : settingsOfFile(outer.config, readFile, problems)
  const given: GivenSettings = { ...file?.settings, ...outer }
  // Combinations are only checked if every setting is valid.
  if (problems.length === 0) {
    problems.push(...redisProblems(given), ...networkProblems(given))
    problems.push(...(['http', 'admin', 'resp', 'grpc'] as const).flatMap((name) => listenerProblems(name, given)))
  }
  if (problems.length > 0) throw invalidSettings(problems)
  const { hasRules = false, hasGateway = false, hasRoutes = false, isTls = false } = file ?? {}
  const ownFile = hasGateway && !hasRules && given.config !== undefined ? { file: given.config } : {}
  return { ...completed(given, { cores, hasRules, hasRoutes, isTls, ...ownFile }), fileSettings: file?.settings ?? {} }
}

/** The settings that the URLs of the service are made of. */
export type OriginSettings = Pick<Settings, 'host' | 'port' | 'httpTls' | 'admin'>

/** URL of the service on this machine. `port`: the actual port. Default: the port in the settings. */
export function originOf({ host, port: usual, httpTls }: OriginSettings, port: number = usual): string {
  return `${httpTls === undefined ? 'http' : 'https'}://${hostInUrl(host)}:${port}`
}

/** URL of the admin API on this machine, which may have a listener of its own. */
export function adminOriginOf(
  settings: OriginSettings,
  ports: { readonly http?: number; readonly admin?: number } = {},
): string {
  const { admin, host } = settings
  if (admin === undefined) return originOf(settings, ports.http)
  return originOf({ ...settings, host: admin.host ?? host }, ports.admin ?? admin.port)
}

/** Whether `host` is reachable from this machine only. A name other than localhost may resolve to any address. */
export function isLoopback(host: string): boolean {
  if (host.toLowerCase() === 'localhost') return true
  const address = parseIp(host)
  if (address === undefined) return false
  return address.isIpv4 ? address.word3 >>> 24 === 127 : address.toString() === '::1'
}

/** Items of a comma-separated setting. */
function listOf(text: string | undefined): readonly string[] {
  return text?.split(',') ?? []
}

/** Host for URLs of this machine: a wildcard address becomes a loopback address. */
export function hostInUrl(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}

function completed(
  given: GivenSettings,
  { cores, hasRules, ...file }: { cores: number; hasRules: boolean } & GatewayFileSettings,
): Omit<Settings, 'fileSettings'> {
  const host = given.host ?? '127.0.0.1'
  return {
    host,
    port: given.port ?? 8080,
    httpTls: tlsOf('http', given),
    admin: addressOf('admin', given),
    resp: listenerOf('resp', given),
    grpc: grpcOf(given),
    gateway: gatewayOf(given, file),
    dataDir: given.dataDir ?? '.sluice',
    rulesFile: hasRules ? given.config : undefined,
    redis: redisOf(given),
    databaseUrl: given.databaseUrl,
    threads: given.threads === 'auto' ? cores : (given.threads ?? 1),
    maxKeys: given.maxKeys ?? 250_000,
    stateSize: given.stateSize ?? 64,
    // More would only queue.
    maxInFlight: given.maxInFlight ?? 5000,
    maxAdHocLimits: given.maxAdHocLimits ?? 1000,
    trustedProxies: listOf(given.trustedProxies),
    forwardAuthIdentity: Object.fromEntries(listOf(given.forwardAuthIdentity).map((pair) => pair.split('='))),
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
    dashboard: given.dashboard ?? true,
    basePath: given.basePath ?? '/',
  }
}

const USUAL_PORTS = { resp: 6380, grpc: 8081 } as const
const USUAL_GATEWAY_PORT = 8000

/** Settings that need a Redis URL. The failure mode does not: counters in memory are always available. */
const OF_REDIS = ['redisCluster', 'redisSentinel', 'redisPrefix', 'leases', 'storeDeadlineMs'] as const

function redisProblems(given: GivenSettings): readonly SettingProblem[] {
  if (given.redisUrl === undefined) {
    const said = OF_REDIS.filter((name) => given[name] !== undefined && given[name] !== false)
    if (said.length === 0) return []
    const flags = said.map((name) => `--${SETTING_TABLE[name].flag}`).join(', ')
    return [{ received: `${flags} without --redis-url`, expected: '--redis-url as well' }]
  }
  const isBoth = given.redisCluster === true && given.redisSentinel !== undefined
  return isBoth ? [{ received: 'both --redis-cluster and --redis-sentinel', expected: 'one of them' }] : []
}

/** A listener that can be turned off. */
type OptionalListener = keyof typeof USUAL_PORTS

/** Where a listener listens: on if its port is set, or with `--all-listeners`. */
function addressOf(name: OptionalListener | 'admin', given: GivenSettings): ListenerAddress | undefined {
  const port =
    given[`${name}Port`] ?? (given.allListeners === true && name !== 'admin' ? usualPort(name, given) : 'off')
  if (port === 'off') return undefined
  const host = given[`${name}Host`]
  return host === undefined ? { port } : { port, host, checkKey: given.checkKey ?? !isLoopback(host) }
}

function usualPort(name: OptionalListener, { port }: GivenSettings): number {
  return port === 0 ? 0 : USUAL_PORTS[name]
}

function listenerOf(name: OptionalListener, given: GivenSettings): ListenerSettings | undefined {
  const address = addressOf(name, given)
  return address && { ...address, tls: tlsOf(name, given) }
}

function tlsOf(name: OptionalListener | 'http', given: GivenSettings): TlsSettings | undefined {
  const cert = given[`${name}TlsCert`]
  const key = given[`${name}TlsKey`]
  return cert === undefined || key === undefined ? undefined : { cert, key, clientCa: given[`${name}TlsClientCa`] }
}

function grpcOf(given: GivenSettings): GrpcSettings | undefined {
  const listener = listenerOf('grpc', given)
  const { grpcDeadlineMs: deadlineMs = 15, grpcStoreFailure: storeFailure } = given
  return listener && { ...listener, deadlineMs, ...(storeFailure !== undefined && { storeFailure }) }
}

/** On if its port is set, with `--all-listeners`, or if there are routes. */
function gatewayOf(
  { gatewayPort, gatewayHost, port, allListeners }: GivenSettings,
  file: GatewayFileSettings,
): GatewaySettings | undefined {
  const usual = port === 0 ? 0 : USUAL_GATEWAY_PORT
  const chosen = gatewayPort ?? (allListeners === true || file.hasRoutes ? usual : 'off')
  if (chosen === 'off') return undefined
  return { port: chosen, ...(gatewayHost !== undefined && { host: gatewayHost }), ...file }
}

/** Settings that need a port, and files that need each other. */
function listenerProblems(name: OptionalListener | 'http' | 'admin', given: GivenSettings): readonly SettingProblem[] {
  const tls = name === 'admin' ? [] : ([`${name}TlsCert`, `${name}TlsKey`, `${name}TlsClientCa`] as const)
  const host = name === 'http' ? [] : ([`${name}Host`] as const)
  const flagsOf = (names: readonly (keyof GivenSettings & SettingName)[]): readonly string[] =>
    names.filter((each) => given[each] !== undefined).map((each) => `--${SETTING_TABLE[each].flag}`)
  const files = flagsOf(tls)
  const said = [...flagsOf(host), ...files]
  if (said.length > 0 && name !== 'http' && addressOf(name, given) === undefined)
    return [{ received: `${said.join(', ')} without --${name}-port`, expected: `--${name}-port as well` }]
  if (files.length === 0 || name === 'admin' || tlsOf(name, given) !== undefined) return []
  const of = given[`${name}TlsClientCa`] === undefined ? 'both or neither' : `both with --${name}-tls-client-ca`
  return [{ received: `only ${files.join(', ')}`, expected: `--${name}-tls-cert and --${name}-tls-key: ${of}` }]
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
      return [{ received: `${network} in --${flag}`, expected: `valid networks (${cidr.problem})` }]
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
    action: 'Correct or remove it. --help lists all settings and their defaults.',
    problems,
  })
}
