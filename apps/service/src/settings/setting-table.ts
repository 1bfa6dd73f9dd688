import type { HeaderProfile } from '@sluice/contract'
import { HEADER_PROFILES } from '@sluice/contract'
import type { FailureMode } from '@sluice/core'
import { METADATA_NETWORKS } from '@sluice/core/internal'
import type { LogLevel } from '@sluice/runtime'
import type { DashboardSettingValues } from './dashboard-settings.ts'
import { DASHBOARD_SETTINGS } from './dashboard-settings.ts'
import type { SettingDefinition } from './setting-definition.ts'
import {
  HOST_SCHEMA,
  hostSetting,
  PLAIN_TEXT,
  PORT_OR_OFF,
  PORT_SCHEMA,
  portSetting,
  tlsSettings,
} from './setting-definition.ts'

/** What gRPC calls get that were decided without the store: the answer of the failure mode, or an error. */
export type GrpcStoreFailure = 'mode' | 'error'

/** What each setting is once it was read. */
export interface SettingValues extends DashboardSettingValues {
  readonly host: string
  readonly port: number
  readonly httpTlsCert: string
  readonly httpTlsKey: string
  readonly httpTlsClientCa: string
  readonly adminPort: number | 'off'
  readonly adminHost: string
  readonly allListeners: boolean
  readonly respPort: number | 'off'
  readonly respHost: string
  readonly respTlsCert: string
  readonly respTlsKey: string
  readonly respTlsClientCa: string
  readonly gatewayPort: number | 'off'
  readonly gatewayHost: string
  readonly grpcPort: number | 'off'
  readonly grpcHost: string
  readonly grpcDeadlineMs: number
  readonly grpcStoreFailure: GrpcStoreFailure
  readonly grpcTlsCert: string
  readonly grpcTlsKey: string
  readonly grpcTlsClientCa: string
  readonly dataDir: string
  readonly config: string
  /** One or more, with commas between. */
  readonly redisUrl: string
  readonly redisCluster: boolean
  readonly redisSentinel: string
  readonly redisPrefix: string
  readonly leases: boolean
  readonly failureMode: FailureMode
  readonly storeDeadlineMs: number
  readonly databaseUrl: string
  readonly threads: number | 'auto'
  readonly maxKeys: number
  readonly stateSize: number
  readonly maxInFlight: number
  readonly maxAdHocLimits: number
  /** Networks with commas between. */
  readonly trustedProxies: string
  /** Fields and headers with `=`, several with commas between. */
  readonly forwardAuthIdentity: string
  readonly defaultLimit: boolean
  readonly headers: HeaderProfile
  readonly retryJitter: number
  readonly maxConnectionsPerAddress: number
  /** Names with commas between. */
  readonly allowedHosts: string
  readonly checkKey: boolean
  readonly adminKeyFile: string
  readonly logLevel: LogLevel | 'off'
  readonly machine: number
  readonly region: string
  readonly otlpEndpoint: string
  /** One or more, with commas between. */
  readonly alertWebhooks: string
  readonly blockWebhooks: string
  /** One or more, with commas between: the first is the current one. */
  readonly webhookSecret: string
  /** Networks with commas between, or `none`. */
  readonly webhookDenyList: string
  readonly drainMs: number
}

/** The name of a setting. */
export type SettingName = keyof SettingValues

const REDIS_URLS = '^(rediss?|valkeys?)://\\S+(,(rediss?|valkeys?)://\\S+)*$'
const HTTP_URL = '^https?://\\S+$'
const WEBHOOK_SECRET = 'whsec_([A-Za-z0-9+/]{4}){8,21}([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?'
const NETWORKS = '^[0-9A-Fa-f.:/]+(,[0-9A-Fa-f.:/]+)*$'
const HTTP_URLS = '^https?://[^\\s,]+(,https?://[^\\s,]+)*$'

/** The networks that the gateway does not connect to either, unless an upstream allows them. */
export const DEFAULT_DENIED_TARGETS: string = METADATA_NETWORKS.join(',')

/**
 * Everything that can be set, by the name it has in the `service` part of a configuration file: by flag, else by
 * variable of the environment, else in that file.
 */
export const SETTING_TABLE: Readonly<Record<SettingName, SettingDefinition>> = {
  host: {
    flag: 'host',
    variable: 'HOST',
    argument: '<address>',
    help: 'Address to listen on. Default: 127.0.0.1, which only this machine can reach.',
    schema: HOST_SCHEMA,
  },
  port: {
    flag: 'port',
    variable: 'PORT',
    argument: '<number>',
    help: 'Port to listen on; 0 for any free port. Default: 8080.',
    schema: PORT_SCHEMA,
  },
  ...tlsSettings('http', 'the HTTP listeners'),
  adminPort: {
    ...portSetting('admin-port', 'ADMIN_PORT', 'the admin API'),
    help:
      'Port of a second HTTP listener, with the admin API and metrics, which --port then does not serve; 0 for any ' +
      'free port. Default: off, all on --port.',
  },
  adminHost: hostSetting('admin-host', 'ADMIN_HOST', 'that listener'),
  allListeners: {
    flag: 'all-listeners',
    variable: 'SLUICE_ALL_LISTENERS',
    argument: '',
    help:
      'Start every listener on its usual port: gateway 8000, gRPC 8081, Redis protocol 6380. With --port 0, any free ' +
      'port. Default: HTTP, and the gateway if the file has routes.',
    schema: { type: 'boolean', title: 'true or false' },
  },
  respPort: portSetting('resp-port', 'SLUICE_RESP_PORT', 'the Redis protocol listener'),
  respHost: hostSetting('resp-host', 'SLUICE_RESP_HOST', 'the Redis protocol listener'),
  ...tlsSettings('resp', 'the Redis protocol listener'),
  gatewayPort: {
    flag: 'gateway-port',
    variable: 'SLUICE_GATEWAY_PORT',
    argument: '<number>',
    help:
      'Port of the gateway; 0 for any free port. Without routes in the file, a demo upstream answers. Default: 8000 ' +
      'if the file has routes, else off.',
    schema: PORT_OR_OFF,
  },
  gatewayHost: hostSetting('gateway-host', 'SLUICE_GATEWAY_HOST', 'the gateway'),
  grpcPort: portSetting('grpc-port', 'SLUICE_GRPC_PORT', 'the gRPC listener for Envoy'),
  grpcHost: hostSetting('grpc-host', 'SLUICE_GRPC_HOST', 'the gRPC listener'),
  grpcDeadlineMs: {
    flag: 'grpc-deadline-ms',
    variable: 'SLUICE_GRPC_DEADLINE_MS',
    argument: '<ms>',
    help: 'How long a gRPC call waits for Redis before --failure-mode decides; Envoy gives up after 20. Default: 15.',
    schema: { type: 'integer', minimum: 1, maximum: 60_000 },
  },
  grpcStoreFailure: {
    flag: 'grpc-store-failure',
    variable: 'SLUICE_GRPC_STORE_FAILURE',
    argument: '<answer>',
    help:
      'What gRPC calls get while Redis does not answer: "mode", the answer of --failure-mode, or "error", the status ' +
      'UNAVAILABLE, so that Envoy decides by failure_mode_deny. Default: mode.',
    schema: { enum: ['mode', 'error'] },
  },
  ...tlsSettings('grpc', 'the gRPC listener'),
  ...DASHBOARD_SETTINGS,
  dataDir: {
    flag: 'data-dir',
    variable: 'SLUICE_DATA_DIR',
    argument: '<folder>',
    help: 'Folder for the files of the service; created when missing. Default: .sluice.',
    schema: { type: 'string', pattern: PLAIN_TEXT, title: 'the path of a folder' },
  },
  config: {
    flag: 'config',
    variable: 'SLUICE_CONFIG',
    argument: '<file>',
    help: 'Path of a sluice.yaml. Its rules replace those in the database; its "service" part holds these settings.',
    schema: { type: 'string', pattern: PLAIN_TEXT, title: 'the path of a file' },
  },
  redisUrl: {
    flag: 'redis-url',
    variable: 'REDIS_URL',
    argument: '<url,...>',
    help: 'Redis URL(s) for shared counters. Default: in-process memory.',
    schema: {
      type: 'string',
      pattern: REDIS_URLS,
      title: 'redis://[[user]:password@]host[:port][/database] or rediss://, several with commas between',
    },
    isSecret: true,
  },
  redisCluster: {
    flag: 'redis-cluster',
    variable: 'SLUICE_REDIS_CLUSTER',
    argument: '',
    help: 'The Redis URLs are nodes of a cluster.',
    schema: { type: 'boolean', title: 'true or false' },
  },
  redisSentinel: {
    flag: 'redis-sentinel',
    variable: 'SLUICE_REDIS_SENTINEL',
    argument: '<name>',
    help: 'The Redis URLs are sentinels; name of the group that they monitor.',
    schema: { type: 'string', pattern: PLAIN_TEXT, title: 'the name of a group of servers' },
  },
  redisPrefix: {
    flag: 'redis-prefix',
    variable: 'SLUICE_REDIS_PREFIX',
    argument: '<text>',
    help: 'Redis key prefix; nodes with the same prefix share limits. Default: sluice.',
    schema: {
      type: 'string',
      pattern: '^[A-Za-z0-9_.:\\-]{1,64}$',
      title: '1 to 64 letters, digits or any of _ . : -',
    },
  },
  leases: {
    flag: 'leases',
    variable: 'SLUICE_LEASES',
    argument: '',
    help: 'Lease units of busy keys from Redis in blocks and decide locally.',
    schema: { type: 'boolean', title: 'true or false' },
  },
  failureMode: {
    flag: 'failure-mode',
    variable: 'SLUICE_FAILURE_MODE',
    argument: '<mode>',
    help: 'Failure mode for rules that set none: open, closed or local. Default: open.',
    schema: { enum: ['open', 'closed', 'local'] },
  },
  storeDeadlineMs: {
    flag: 'store-deadline-ms',
    variable: 'SLUICE_STORE_DEADLINE_MS',
    argument: '<ms>',
    help: 'How long a check waits for Redis before its failure mode answers. Default: 50.',
    schema: { type: 'integer', minimum: 1, maximum: 60_000 },
  },
  databaseUrl: {
    flag: 'database-url',
    variable: 'DATABASE_URL',
    argument: '<url>',
    help: 'PostgreSQL URL for shared configuration. Default: SQLite in the data folder.',
    schema: { type: 'string', pattern: '^postgres(ql)?://\\S+$', title: 'postgres://user:password@host:port/database' },
    isSecret: true,
  },
  threads: {
    flag: 'threads',
    variable: 'SLUICE_THREADS',
    argument: '<number>',
    help: 'Threads that serve requests and share the port and the limits; auto: one per core. Default: 1.',
    schema: { anyOf: [{ type: 'integer', minimum: 1, maximum: 64 }, { const: 'auto' }], title: '1 to 64, or auto' },
  },
  maxKeys: {
    flag: 'max-keys',
    variable: 'SLUICE_MAX_KEYS',
    argument: '<number>',
    help: 'Maximum number of keys in memory; with Redis, per thread for failure mode local. Default: 250000.',
    schema: { type: 'integer', minimum: 64, maximum: 16_000_000 },
  },
  stateSize: {
    flag: 'state-size',
    variable: 'SLUICE_STATE_SIZE',
    argument: '<number>',
    help: 'Maximum number of values stored per key with several threads; a concurrency slot takes 3. Default: 64.',
    schema: { type: 'integer', minimum: 4, maximum: 16_384 },
  },
  maxInFlight: {
    flag: 'max-in-flight',
    variable: 'SLUICE_MAX_IN_FLIGHT',
    argument: '<number>',
    help: 'Maximum number of in-flight checks per thread; further checks get 503 at once. Default: 5000.',
    schema: { type: 'integer', minimum: 1, maximum: 100_000 },
  },
  maxAdHocLimits: {
    flag: 'max-ad-hoc-limits',
    variable: 'SLUICE_MAX_AD_HOC_LIMITS',
    argument: '<number>',
    help: 'Maximum number of different limits that CL.THROTTLE can name, per thread. Default: 1000.',
    schema: { type: 'integer', minimum: 1, maximum: 1_000_000 },
  },
  maxConnectionsPerAddress: {
    flag: 'max-connections-per-address',
    variable: 'SLUICE_MAX_CONNECTIONS_PER_ADDRESS',
    argument: '<number>',
    help: 'Maximum number of connections per address and thread, except loopback and trusted proxies. Default: 1000.',
    schema: { type: 'integer', minimum: 1, maximum: 1_000_000 },
  },
  trustedProxies: {
    flag: 'trusted-proxies',
    variable: 'SLUICE_TRUSTED_PROXIES',
    argument: '<network,...>',
    help:
      'Networks of your proxies: no connection limit, no blocks by penalties, and their X-Forwarded-For names who ' +
      'failed to log in. Default: none.',
    schema: {
      type: 'string',
      pattern: NETWORKS,
      title: 'networks such as 10.0.0.0/8 or fd00::/8, several with commas between',
    },
  },
  forwardAuthIdentity: {
    flag: 'forward-auth-identity',
    variable: 'SLUICE_FORWARD_AUTH_IDENTITY',
    argument: '<field=header,...>',
    help: 'Headers that name the caller in forward authentication; the proxy must set or remove them. Default: none.',
    schema: {
      type: 'string',
      pattern: '^(user|apiKey|tenant)=[A-Za-z0-9-]{1,64}(,(user|apiKey|tenant)=[A-Za-z0-9-]{1,64})*$',
      title: 'user, apiKey or tenant, = and a header, such as user=X-User; several with commas between',
    },
  },
  defaultLimit: {
    flag: 'default-limit',
    variable: 'SLUICE_DEFAULT_LIMIT',
    argument: '',
    help: 'Limit each caller to 100 requests per minute where no rule matches. Default: such requests are not limited.',
    schema: { type: 'boolean', title: 'true or false' },
  },
  allowedHosts: {
    flag: 'allowed-hosts',
    variable: 'SLUICE_ALLOWED_HOSTS',
    argument: '<name,...>',
    help: 'Accepted host headers, without port. Default: all; on a loopback address, it and localhost.',
    schema: {
      type: 'string',
      pattern: '^[^\\s,/@]+(,[^\\s,/@]+)*$',
      title: 'names or addresses without port, such as sluice.internal or [fd00::7], several with commas between',
    },
  },
  headers: {
    flag: 'headers',
    variable: 'SLUICE_HEADERS',
    argument: '<profile>',
    help: `Rate limit headers of answers: ${HEADER_PROFILES.join(', ')}. Default: legacy.`,
    schema: { enum: HEADER_PROFILES },
  },
  retryJitter: {
    flag: 'retry-jitter',
    variable: 'SLUICE_RETRY_JITTER',
    argument: '<percent>',
    help: 'Add up to this many percent of random jitter to Retry-After. Default: 0.',
    schema: { type: 'integer', minimum: 0, maximum: 100 },
  },
  checkKey: {
    flag: 'check-key',
    variable: 'SLUICE_CHECK_KEY',
    argument: '',
    help:
      'Require an API key for checks, on every listener; --no-check-key: none. Default: required, except on a ' +
      'loopback address.',
    schema: { type: 'boolean', title: 'true or false' },
  },
  adminKeyFile: {
    flag: 'admin-key-file',
    variable: 'SLUICE_ADMIN_KEY_FILE',
    argument: '<file>',
    help: 'File of the first API key: read if it exists, else written (mode 0600). Default: the key is printed.',
    schema: { type: 'string', pattern: PLAIN_TEXT, title: 'the path of a file' },
  },
  logLevel: {
    flag: 'log-level',
    variable: 'SLUICE_LOG_LEVEL',
    argument: '<level>',
    help: 'Log level, on standard error: debug, info (with requests), warn, error or off. Default: warn.',
    schema: { enum: ['debug', 'info', 'warn', 'error', 'off'] },
  },
  machine: {
    flag: 'machine',
    variable: 'SLUICE_MACHINE',
    argument: '<number>',
    help: 'Unique machine number for ids (0-1023); further threads use the next ones. Default: leased automatically.',
    schema: { type: 'integer', minimum: 0, maximum: 1023 },
  },
  region: {
    flag: 'region',
    variable: 'SLUICE_REGION',
    argument: '<name>',
    help: 'Default region for requests that send none.',
    schema: { type: 'string', pattern: '^[\\w.\\-]{1,64}$', title: '1 to 64 letters, digits or any of _ . -' },
  },
  otlpEndpoint: {
    flag: 'otlp-endpoint',
    variable: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    argument: '<url>',
    help: 'OTLP/HTTP endpoint for traces. Default: no traces.',
    schema: { type: 'string', pattern: HTTP_URL, title: 'http://host:port or https://' },
    isSecret: true,
  },
  alertWebhooks: {
    flag: 'alert-webhooks',
    variable: 'SLUICE_ALERT_WEBHOOKS',
    argument: '<url,...>',
    help: 'Webhook URL(s) for alerts. Default: alerts are only listed.',
    schema: { type: 'string', pattern: HTTP_URLS, title: 'http:// or https:// addresses, several with commas between' },
    isSecret: true,
  },
  blockWebhooks: {
    flag: 'block-webhooks',
    variable: 'SLUICE_BLOCK_WEBHOOKS',
    argument: '<url,...>',
    help: 'Send a webhook there when an address is blocked or its block is lifted. Default: none.',
    schema: { type: 'string', pattern: HTTP_URLS, title: 'http:// or https:// addresses, several with commas between' },
    isSecret: true,
  },
  webhookSecret: {
    flag: 'webhook-secret',
    variable: 'SLUICE_WEBHOOK_SECRET',
    argument: '<whsec_...,...>',
    help: 'Secret that signs webhooks; two, comma-separated, during rotation. Default: not signed.',
    schema: {
      type: 'string',
      pattern: `^${WEBHOOK_SECRET}(,${WEBHOOK_SECRET})*$`,
      title: 'whsec_ and the base64 of 24 to 64 random bytes, such as whsec_$(openssl rand -base64 32)',
    },
    isSecret: true,
  },
  webhookDenyList: {
    flag: 'webhook-deny-list',
    variable: 'SLUICE_WEBHOOK_DENY_LIST',
    argument: '<network,...>',
    help: `Networks that webhooks are never sent to, or none. Default: ${DEFAULT_DENIED_TARGETS}.`,
    schema: {
      type: 'string',
      pattern: '^(none|[0-9A-Fa-f.:/]+(,[0-9A-Fa-f.:/]+)*)$',
      title: 'networks such as 10.0.0.0/8 or fe80::/10, several with commas between, or none',
    },
  },
  drainMs: {
    flag: 'drain-ms',
    variable: 'SLUICE_DRAIN_MS',
    argument: '<ms>',
    help: 'How long the service keeps serving after SIGTERM while load balancers move traffic away. Default: 3000.',
    schema: { type: 'integer', minimum: 0, maximum: 600_000 },
  },
}

/** All names, in the order of the help. */
export const SETTING_NAMES: readonly SettingName[] = Object.keys(SETTING_TABLE) as SettingName[]

const WIDTH = 30

/** No setting: a start that makes a key each time must not be possible by environment or file. */
export const NEW_ADMIN_KEY = '--new-admin-key'

/** What `--help` prints: every setting by flag and variable, and what it does. */
export function settingsHelp(): string {
  const lines = SETTING_NAMES.flatMap((name) => {
    const { flag, variable, argument, help } = SETTING_TABLE[name]
    const usage = `  --${flag}${argument === '' ? '' : ` ${argument}`}`
    return [`${usage.padEnd(WIDTH)} ${help}`, `${' '.repeat(WIDTH)} Environment: ${variable}. File: service.${name}`]
  })
  return [
    'Usage: sluice serve [settings], or npm start -- [settings] in the repository',
    '',
    'Precedence: flag > environment variable > "service" in the --config file.',
    'Without settings, all state is kept in this process and in the folder .sluice.',
    '',
    ...lines,
    `${`  ${NEW_ADMIN_KEY}`.padEnd(WIDTH)} Create another API key with the role admin in the database, print it ` +
      'and exit.',
    `${'  --help'.padEnd(WIDTH)} Print this help.`,
    '',
    'Only in a file: service.alerts, the alert rules (docs/guides/operate/alerts.md).',
  ].join('\n')
}
