import type { ConfigStats } from '@sluice/config-store'
import type { ReadinessReason } from '@sluice/contract'
import { CHECK_PATH } from '@sluice/contract'
import { isSluiceError } from '@sluice/core'
import { urlWithoutSecrets } from '@sluice/core/options'
import { RuleSetError } from '@sluice/core/policy'
import type { RecoveredKey } from './config/admin-key.ts'
import { DEMO_KEY } from './listeners/gateway/demo-upstream.ts'
import type { ListenerAccess, ListenerName, ListenerPorts } from './listeners/listener.ts'
import { accessText, listenerAccess, listenerHost } from './listeners/listener.ts'
import { isServiceError, SERVICE_ERRORS } from './service-error.ts'
import type { Settings } from './settings/settings.ts'
import { adminOriginOf, hostInUrl, isLoopback, originOf } from './settings/settings.ts'

/** What the start message shows. */
export interface StartupFacts {
  readonly settings: Settings
  /** Ports of the listeners. */
  readonly ports: ListenerPorts
  /** The active rules and their source; undefined while there are none. */
  readonly rules: Pick<ConfigStats, 'enforcedVersion' | 'source'> | undefined
  /** Everything that is wrong. */
  readonly reasons: readonly ReadinessReason[]
}

/** The shell fills in the key, which is shown only once. */
const KEY_HEADER = ' -H "Authorization: Bearer $SLUICE_API_KEY"'

const TRY_BODY = '{"userId":"user-123","resource":"/api/v1/data"}'

/** Two of these are more than the first rules allow in a minute. */
const DENIED_BODY = '{"userId":"user-123","resource":"/api/v1/data","tokens":60}'

/** The text to print once the service listens. It ends with commands to try. */
export function startupMessage({ settings, ports, rules, reasons }: StartupFacts): string {
  const origin = originOf(settings, ports.http)
  const admin = adminOriginOf(settings, ports)
  const check = `${origin}${CHECK_PATH}`
  const headers = `-H 'Content-Type: application/json'${listenerAccess('http', settings) === 'key' ? KEY_HEADER : ''}`
  const lines = [
    'Sluice is running.',
    ...(settings.dashboard ? [`  dashboard   ${admin}/`] : []),
    `  check API   ${check}`,
    `  admin API   ${admin}/admin (needs an API key)`,
    `  OpenAPI     ${origin}/openapi.json`,
    `  metrics     ${admin}/metrics`,
    `  health      ${origin}/livez and ${origin}/readyz`,
    ...gatewayLine(settings, ports),
    ...grpcLine(settings, ports),
    ...respLine(settings, ports),
    `  counters    ${countersOf(settings)}`,
    `  rules       ${rulesOf(settings, rules)}`,
    `  listening   ${exposureOf(settings, ports)}`,
    ...reasons.map(({ message }) => `  WARNING     ${message}`),
    'Try it:',
    ...demoLine(settings, ports),
    `  curl -i ${check} ${headers} -d '${TRY_BODY}'`,
    ...(isFirstVersion(settings, rules)
      ? [
          'Try a denial, the second of these two calls:',
          `  curl -s -w '%{http_code}\\n' ${check} ${check} ${headers} -d '${DENIED_BODY}'`,
        ]
      : []),
  ]
  return lines.join('\n')
}

/** Whether the rules are those of the first start: 100 tokens per minute for each user. */
function isFirstVersion({ rulesFile }: Settings, rules: StartupFacts['rules']): boolean {
  return rulesFile === undefined && rules?.enforcedVersion === 1
}

function gatewayLine(settings: Settings, { gateway }: ListenerPorts): readonly string[] {
  if (settings.gateway === undefined || gateway === undefined) return []
  const { hasRoutes, isTls } = settings.gateway
  const what = hasRoutes
    ? `routes of ${settings.gateway.file ?? settings.rulesFile}`
    : 'demo upstream, until sluice.yaml has routes'
  const host = hostInUrl(listenerHost('gateway', settings))
  return [`  gateway     ${isTls ? 'https' : 'http'}://${host}:${gateway} (${what})`]
}

/** More requests than the first rules allow in a minute: the last ones are denied. */
const DEMO_REQUESTS = 105

/** A command that shows denied requests through the demo of the gateway. */
function demoLine(settings: Settings, { gateway }: ListenerPorts): readonly string[] {
  if (settings.gateway === undefined || gateway === undefined || settings.gateway.hasRoutes) return []
  const url = `http://${hostInUrl(listenerHost('gateway', settings))}:${gateway}/orders?n=[1-${DEMO_REQUESTS}]`
  return [`  curl -s -o /dev/null -w '%{http_code}\\n' -H 'X-API-Key: ${DEMO_KEY}' '${url}' | sort | uniq -c`]
}

function grpcLine(settings: Settings, { grpc }: ListenerPorts): readonly string[] {
  if (settings.grpc === undefined || grpc === undefined) return []
  const scheme = settings.grpc.tls === undefined ? 'grpc' : 'grpcs'
  return [
    `  Envoy       ${scheme}://${hostInUrl(listenerHost('grpc', settings))}:${grpc} (${accessText('grpc', settings)})`,
  ]
}

function respLine(settings: Settings, { resp }: ListenerPorts): readonly string[] {
  if (settings.resp === undefined || resp === undefined) return []
  const scheme = settings.resp.tls === undefined ? 'redis' : 'rediss'
  return [
    `  Redis       ${scheme}://${hostInUrl(listenerHost('resp', settings))}:${resp} (${accessText('resp', settings)})`,
  ]
}

/** Shows the first API key when it is created, which is the only time; with a key file, the path of the file. */
export function firstKeyMessage(token: string, file: string | undefined): string {
  if (file !== undefined) return `The admin API key is in ${file}.`
  return `Admin API key (shown once, save it now):\n  ${token}`
}

/**
 * Why the service could not start: the code and its meaning, each problem on its own line, then what to do. Undefined
 * for a bug in the service.
 */
export function startupErrorText(error: unknown): string | undefined {
  if (isServiceError(error)) {
    const { code, problems, action } = error
    const lines = problems.map(({ received, expected }) => `  received ${received}; expected ${expected}`)
    return [`${code}: ${SERVICE_ERRORS[code]}.`, ...lines, action].join('\n')
  }
  if (error instanceof RuleSetError) {
    const lines = error.problems.map(({ path, line, received, expected }) => {
      const place = `${path || 'the whole file'}${line === undefined ? '' : ` (line ${line})`}`
      return `  ${place}: received ${received}; expected ${expected}`
    })
    const count = lines.length === 1 ? '1 problem' : `${lines.length} problems`
    const head = `${error.code}: the rules file has ${count}.`
    return [head, ...lines, 'Correct the file and start again. "sluice rules validate <file>" checks it.'].join('\n')
  }
  return isSluiceError(error) ? error.message : undefined
}

/** Shows the API key that `--new-admin-key` created. */
export function recoveredKeyMessage({ token, file }: RecoveredKey): string {
  const advice = 'Revoke the lost key: sluice keys list, sluice keys revoke <id>.'
  if (file !== undefined) return `The admin API key is in ${file}. ${advice}`
  return `Admin API key (shown once, save it now):\n  ${token}\n${advice}`
}

function countersOf({ redis, threads }: Settings): string {
  if (redis !== undefined) return `in Redis at ${redis.urls.map(urlWithoutSecrets).join(', ')}`
  return threads === 1 ? 'in memory' : `in memory, shared by ${threads} threads`
}

function rulesOf({ rulesFile, databaseUrl, dataDir }: Settings, rules: StartupFacts['rules']): string {
  const place = rulesFile ?? (databaseUrl === undefined ? `SQLite in ${dataDir}` : urlWithoutSecrets(databaseUrl))
  if (rules?.enforcedVersion === undefined) return `none yet, from ${place}: checks get 503 until rules are loaded`
  const version = `version ${rules.enforcedVersion}`
  return rules.source === 'disk' ? `${version}, from the copy in ${dataDir}` : `${version}, from ${place}`
}

function exposureOf(settings: Settings, ports: ListenerPorts): string {
  const names = Object.keys(ports) as ListenerName[]
  const placeOf = (name: ListenerName): string =>
    `${listenerHost(name, settings)} (${name}; ${accessText(name, settings)})`
  if (isLoopback(settings.host)) {
    const exposed = names.filter((name) => !isLoopback(listenerHost(name, settings)))
    if (exposed.length === 0) return 'localhost only (set HOST=0.0.0.0 to expose)'
    return `localhost, and ${exposed.map(placeOf).join(', ')}`
  }
  const elsewhere = names.filter((name) => listenerHost(name, settings) !== settings.host)
  return [`${settings.host}; ${CHECK_ACCESS[listenerAccess('http', settings)]}`, ...elsewhere.map(placeOf)].join('; ')
}

const CHECK_ACCESS: Readonly<Record<Exclude<ListenerAccess, 'routes'>, string>> = {
  none: 'the check API needs no API key (--check-key to require one)',
  key: 'the check API needs an API key (--no-check-key to disable)',
  certificate: 'every client needs a certificate',
}
