import { ProblemList, pointerTo, SchemaCheck } from '@sluice/core/internal'
import type { GatewayParts, RuleSetProblem } from '@sluice/core/policy'
import { isRuntimeError, startupLevels } from '@sluice/runtime'
import { isReservedHeader } from '../http/request-headers.ts'
import { GatewayCheck } from './check-context.ts'
import { checkCertificate, checkKeySet } from './file-checks.ts'
import { DEFAULTS, type GatewayConfig, type GatewayOptionsConfig } from './gateway-config.ts'
import { GATEWAY_SCHEMA } from './gateway-schema.ts'
import { checkRoutes } from './route-checks.ts'
import { checkUpstream } from './upstream-checks.ts'

/** What a configuration is checked against. */
export interface GatewayCheckOptions {
  /** Folder that relative paths begin in: that of the configuration file. */
  readonly folder: string
}

const CHECK = new SchemaCheck(GATEWAY_SCHEMA)

/**
 * Everything that is wrong with the parts for the gateway, with what was received and what is expected; nothing when
 * they can be used. First their form, then, where that is right, what they mean. Reads the files that they name. Never
 * throws.
 */
export function checkGatewayConfig(parts: GatewayParts, { folder }: GatewayCheckOptions): readonly RuleSetProblem[] {
  const form = CHECK.problemsOf(parts)
  const check = new GatewayCheck(new ProblemList(form), folder)
  // Where the form is wrong, its problems come first; the meaning of the rest is still checked, part by part.
  const config = parts as GatewayConfig
  if (check.isSound('/gateway')) checkOptions(check, config.gateway ?? {})
  for (const [name, upstream] of Object.entries(config.upstreams ?? {})) {
    const path = pointerTo('/upstreams', name)
    if (check.isSound(path)) checkUpstream(check, upstream, path)
  }
  checkRoutes(check, config)
  return check.problems
}

function checkOptions(check: GatewayCheck, options: GatewayOptionsConfig): void {
  check.networks('/gateway/trustedProxies', options.trustedProxies)
  check.networks('/gateway/proxyProtocolFrom', options.proxyProtocolFrom)
  check.timeouts('/gateway/timeouts', options.timeouts)
  for (const [index, certificate] of (options.tls?.certificates ?? []).entries()) {
    checkCertificate(check, certificate, `/gateway/tls/certificates/${index}`)
  }
  checkHeaders(check, options)
  if (options.jwt !== undefined) checkKeySet(check, options.jwt.jwks, '/gateway/jwt/jwks')
  checkConsumers(check, options.consumers ?? [])
  checkServices(check, options.services ?? {})
}

/** Checks the headers that callers are identified by, and those that tell upstreams who they are. */
function checkHeaders(check: GatewayCheck, options: GatewayOptionsConfig): void {
  const { trustedProxies = [], forwardedHeader, consumers = [], keyHeaders = [], identityHeaders = {} } = options
  if (forwardedHeader !== undefined && trustedProxies.length === 0) {
    check.add('/gateway/forwardedHeader', 'given without trustedProxies', 'trustedProxies beside it, or none of both')
  }
  if (keyHeaders.length > 0 && consumers.length === 0) {
    check.add('/gateway/keyHeaders', 'given without consumers', 'consumers beside it, or none of both')
  }
  const names = [
    ...keyHeaders.map((name, index) => [`/gateway/keyHeaders/${index}`, name] as const),
    ...Object.entries(identityHeaders).map(([field, name]) => [`/gateway/identityHeaders/${field}`, name] as const),
  ]
  for (const [path, name] of names) {
    if (!isReservedHeader(name)) continue
    check.add(path, JSON.stringify(name), 'another header: this one has a meaning of its own for HTTP or the gateway')
  }
  check.unique(
    Object.entries({ ...DEFAULTS.identityHeaders, ...identityHeaders }).map(
      ([field, name]) => [`/gateway/identityHeaders/${field}`, name.toLowerCase()] as const,
    ),
    'a header of its own',
  )
}

function checkConsumers(check: GatewayCheck, consumers: NonNullable<GatewayOptionsConfig['consumers']>): void {
  const place = '/gateway/consumers'
  check.unique(
    consumers.map(({ name }, index) => [`${place}/${index}/name`, name] as const),
    'a name of its own',
  )
  check.unique(
    consumers.flatMap(({ keys }, index) => keys.map((key, at) => [`${place}/${index}/keys/${at}`, key] as const)),
    'a key that no other consumer has',
  )
}

function checkServices(check: GatewayCheck, services: NonNullable<GatewayOptionsConfig['services']>): void {
  const known = Object.keys(services)
  let isKnown = true
  for (const [name, { url, dependsOn = [] }] of Object.entries(services)) {
    const path = pointerTo('/gateway/services', name)
    checkServiceUrl(check, url, `${path}/url`)
    for (const [index, other] of dependsOn.entries()) {
      isKnown &&= known.includes(other)
      check.name(`${path}/dependsOn/${index}`, other, { known, what: 'a service' })
    }
  }
  if (!isKnown) return
  try {
    startupLevels(known.map((name) => ({ name, dependsOn: services[name]?.dependsOn })))
  } catch (error) {
    if (!isRuntimeError(error)) throw error
    const cycle = error.received
    const [first = ''] = cycle.split(' -> ')
    check.add(`${pointerTo('/gateway/services', first)}/dependsOn`, `a cycle: ${cycle}`, 'no service before itself')
  }
}

function checkServiceUrl(check: GatewayCheck, text: string, path: string): void {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const expected = 'a URL such as "http://127.0.0.1:3000/health" or "tcp://127.0.0.1:5432"'
  if (url === undefined || !['http:', 'https:', 'tcp:'].includes(url.protocol) || url.hostname === '') {
    check.add(path, JSON.stringify(text), expected)
  } else if (url.username !== '' || url.password !== '')
    check.add(path, 'a URL with credentials', `${expected}, without`)
  else if (url.protocol === 'tcp:' && url.port === '')
    check.add(path, JSON.stringify(text), `${expected}, with its port`)
}
