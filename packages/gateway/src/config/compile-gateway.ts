import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Cidr, durationMs, parseCidr } from '@sluice/core/internal'
import { RuleSetError } from '@sluice/core/policy'
import { targetRewriter } from '../routing/path.ts'
import { type RouteEntry, RouteTable } from '../routing/route-table.ts'
import { checkGatewayConfig, type GatewayCheckOptions } from './check-gateway-config.ts'
import type { CompiledConfig, CompiledUpstream, MessageRates, Route, Router, Timeouts } from './compiled-config.ts'
import { isUrl, namedFile } from './file-checks.ts'
import type {
  GatewayConfig,
  GatewayOptionsConfig,
  RouteConfig,
  TimeoutsConfig,
  UpstreamConfig,
} from './gateway-config.ts'
import { DEFAULTS } from './gateway-config.ts'

const CLASS_SIZE = 100

type WebSocketConfig = NonNullable<RouteConfig['webSocket']>

/**
 * Checks a configuration and makes it ready for requests: defaults filled in, durations in milliseconds, files read.
 * Throws a `RuleSetError` with everything that is wrong.
 */
export function compileGateway(config: GatewayConfig, { folder }: GatewayCheckOptions): CompiledConfig {
  const problems = checkGatewayConfig(config as Parameters<typeof checkGatewayConfig>[0], { folder })
  if (problems.length > 0) throw new RuleSetError(problems, 'the gateway configuration')
  const { gateway = {}, routes = [], upstreams = {} } = config
  const parts = { gateway, folder }
  return {
    options: withAbsolutePaths(gateway, folder),
    router: compileRouter(routes, parts),
    upstreams: new Map(Object.entries(upstreams).map(([name, upstream]) => [name, compileUpstream(upstream, parts)])),
    files: [
      ...routes.flatMap((route) => pageFile(route, folder)),
      ...Object.values(upstreams).flatMap((upstream) => tlsFiles(upstream, folder)),
    ],
    trustedProxies: gateway.trustedProxies ?? [],
    proxyProtocolFrom: (gateway.proxyProtocolFrom ?? []).map((text) => parseCidr(text) as Cidr),
    accessLog: gateway.accessLog ?? DEFAULTS.accessLog,
    healthPaths: new Set(gateway.healthPaths ?? DEFAULTS.healthPaths),
  }
}

interface CompileParts {
  readonly gateway: GatewayOptionsConfig
  readonly folder: string
}

function compileRouter(configs: readonly RouteConfig[], parts: CompileParts): Router {
  const routes = configs.map((config) => compileRoute(config, parts))
  const table = new RouteTable(configs.map((config, index) => routeEntry(config, routes[index]!)))
  return {
    routes,
    find: (request) => table.find(request),
    isAmbiguous: (request) => table.isAmbiguous(request),
  }
}

function routeEntry({ match, rewrite, charge, blockAfter, webSocket }: RouteConfig, route: Route): RouteEntry<Route> {
  const { upstream, auth, isLimited, resource, maxBodyBytes } = route
  return {
    hosts: match.hosts,
    path: match.path ?? '*',
    methods: match.methods,
    headers: Object.entries(match.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value] as const),
    // What a request must not get around by another spelling of its path.
    protection: JSON.stringify([
      ...[upstream, auth, isLimited, resource, maxBodyBytes],
      ...[rewrite, charge, blockAfter, webSocket],
    ]),
    value: route,
  }
}

function compileRoute(config: RouteConfig, { gateway, folder }: CompileParts): Route {
  const { blockAfter, denial, webSocket, retries = {} } = config
  return {
    name: config.name,
    upstream: config.upstream,
    targetOf: targetRewriter(config.rewrite ?? {}),
    host: config.rewrite?.host,
    resource: config.resource,
    auth: config.auth ?? DEFAULTS.auth,
    isLimited: config.limits !== 'off',
    refunds: compileRefunds(config.charge),
    blockAfter: blockAfter && {
      responses: blockAfter.responses,
      withinMs: durationMs(blockAfter.within, 'within'),
      blockForMs: durationMs(blockAfter.blockFor, 'blockFor'),
      statuses: new Set(blockAfter.statuses ?? DEFAULTS.blockStatuses),
    },
    denial: denial && {
      status: denial.status ?? DEFAULTS.denialStatus,
      contentType: denial.contentType,
      body: denial.body === undefined ? undefined : denialBody(denial.body, folder),
    },
    webSocket: webSocket && {
      rates: messageRates(webSocket),
      messageResource: webSocket.messageResource,
      byteResource: webSocket.byteResource,
    },
    timeouts: compileTimeouts({ ...gateway.timeouts, ...config.timeouts }),
    maxBodyBytes: config.maxBodyBytes ?? gateway.maxBodyBytes ?? DEFAULTS.maxBodyBytes,
    retries: {
      attempts: retries.attempts ?? DEFAULTS.retryAttempts,
      statuses: new Set(retries.statuses ?? DEFAULTS.retryStatuses),
      budget: retries.budget ?? DEFAULTS.retryBudget,
    },
    priority: config.priority ?? DEFAULTS.priority,
  }
}

function messageRates({ messagesPerSecond, bytesPerSecond, burst }: WebSocketConfig): MessageRates | undefined {
  if (messagesPerSecond === undefined && bytesPerSecond === undefined) return undefined
  return {
    messagesPerSecond: messagesPerSecond ?? Number.POSITIVE_INFINITY,
    bytesPerSecond: bytesPerSecond ?? Number.POSITIVE_INFINITY,
    burstSeconds: burst ?? DEFAULTS.webSocketBurstSeconds,
  }
}

/** With `only`, no response at all (status 0) gives the charge back too. */
function compileRefunds(charge: RouteConfig['charge']): Route['refunds'] {
  if (charge?.only !== undefined) {
    const charged = statusTest(charge.only)
    return (status) => !charged(status)
  }
  return charge?.refund === undefined ? undefined : statusTest(charge.refund)
}

/** Whether a status is one of some statuses and classes such as `5xx`. */
function statusTest(list: readonly (number | string)[]): (status: number) => boolean {
  const statuses = new Set(list)
  return (status) => statuses.has(status) || statuses.has(`${Math.floor(status / CLASS_SIZE)}xx`)
}

function denialBody(body: string, folder: string): string {
  const file = namedFile(body, folder)
  return file === undefined ? body : readFileSync(file, 'utf8')
}

function compileTimeouts({ connect, headers, idle, total }: TimeoutsConfig): Timeouts {
  return {
    connectMs: durationMs(connect ?? DEFAULTS.connectMs, 'connect'),
    headersMs: durationMs(headers ?? DEFAULTS.headersMs, 'headers'),
    idleMs: durationMs(idle ?? DEFAULTS.idleMs, 'idle'),
    totalMs: total === undefined ? Number.POSITIVE_INFINITY : durationMs(total, 'total'),
  }
}

function withAbsolutePaths(options: GatewayOptionsConfig, folder: string): GatewayOptionsConfig {
  const { tls, jwt } = options
  return {
    ...options,
    ...(tls && {
      tls: {
        certificates: tls.certificates.map((certificate) => ({
          ...certificate,
          cert: resolve(folder, certificate.cert),
          key: resolve(folder, certificate.key),
        })),
      },
    }),
    ...(jwt && { jwt: { ...jwt, jwks: isUrl(jwt.jwks) ? jwt.jwks : resolve(folder, jwt.jwks) } }),
  }
}

const TLS_FILES = ['ca', 'cert', 'key'] as const

function compileUpstream(written: UpstreamConfig, { gateway, folder }: CompileParts): CompiledUpstream {
  const upstream = { ...written, connectMs: compileTimeouts(gateway.timeouts ?? {}).connectMs }
  const { tls } = upstream
  if (tls === undefined) return upstream
  const named = TLS_FILES.filter((name) => tls[name] !== undefined)
  const paths = Object.fromEntries(named.map((name) => [name, resolve(folder, tls[name]!)]))
  return { ...upstream, tls: { ...tls, ...paths }, fileStamps: tlsFiles(upstream, folder).map(stampOf) }
}

function tlsFiles({ tls = {} }: UpstreamConfig, folder: string): readonly string[] {
  return TLS_FILES.flatMap((name) => (tls[name] === undefined ? [] : [resolve(folder, tls[name])]))
}

function pageFile({ denial }: RouteConfig, folder: string): readonly string[] {
  const file = denial?.body === undefined ? undefined : namedFile(denial.body, folder)
  return file === undefined ? [] : [file]
}

function stampOf(file: string): string {
  const { mtimeMs, size, ino } = statSync(file)
  return `${mtimeMs}:${size}:${ino}`
}
