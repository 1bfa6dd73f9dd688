import { parsePattern } from '@sluice/core/internal'
import type { GatewayCheck } from './check-context.ts'
import { namedFile, readNamedFile } from './file-checks.ts'
import { DEFAULTS, type GatewayConfig, type RouteConfig } from './gateway-config.ts'

/** Checks what the routes mean, each as far as its form is right. */
export function checkRoutes(check: GatewayCheck, { routes = [], upstreams = {}, gateway }: GatewayConfig): void {
  const known = Object.keys(upstreams)
  const hasIdentities = gateway?.jwt !== undefined || (gateway?.consumers?.length ?? 0) > 0
  const taken = new Map<string, string>()
  for (const [index, route] of routes.entries()) {
    const path = `/routes/${index}`
    if (!check.isSound(path)) continue
    check.name(`${path}/upstream`, route.upstream, { known, what: 'an upstream' })
    checkMatch(check, route, path)
    checkHealthPath(check, route, { path, healthPaths: gateway?.healthPaths ?? DEFAULTS.healthPaths })
    checkResponses(check, route, path)
    checkWebSocket(check, route, `${path}/webSocket`)
    if (route.webSocket !== undefined && upstreams[route.upstream]?.protocol === 'http2') {
      const expected = 'an upstream with "protocol: http1": WebSockets are not opened over HTTP/2'
      check.add(`${path}/webSocket`, `given for the upstream "${route.upstream}" with "protocol: http2"`, expected)
    }
    if (route.auth === 'required' && !hasIdentities && check.isSound('/gateway')) {
      const expected = 'consumers or jwt in gateway: without them every request gets 401'
      check.add(`${path}/auth`, '"required"', expected)
    }
    check.timeouts(`${path}/timeouts`, route.timeouts)
    for (const [at, status] of (route.retries?.statuses ?? []).entries()) {
      if (status >= 400) continue
      check.add(`${path}/retries/statuses/${at}`, String(status), 'a status of 400 or more: others are no failures')
    }
    checkReachable(check, route, { path, taken })
  }
  const names = routes.flatMap((route, index) =>
    check.isSound(`/routes/${index}`) ? [[`/routes/${index}/name`, route.name] as const] : [],
  )
  check.unique(names, 'a name of its own')
}

function checkMatch(check: GatewayCheck, { match, resource, rewrite }: RouteConfig, path: string): void {
  const pattern = match.path === undefined ? undefined : parsePattern(match.path)
  if (pattern !== undefined && 'problem' in pattern) {
    check.add(`${path}/match/path`, JSON.stringify(match.path), `a path that can be matched: ${pattern.problem}`)
  }
  checkResource(check, resource, `${path}/resource`)
  const { stripPrefix } = rewrite ?? {}
  if (stripPrefix === undefined || (pattern !== undefined && 'problem' in pattern)) return
  const prefix = parsePattern(stripPrefix)
  const segments = 'problem' in prefix ? [] : prefix.segments
  const isPrefix = segments.length > 0 && segments.every((segment, at) => pattern?.segments[at] === segment)
  if (isPrefix) return
  const received = `${JSON.stringify(stripPrefix)}, and match.path is ${JSON.stringify(match.path ?? 'any path')}`
  check.add(`${path}/rewrite/stripPrefix`, received, `a match.path that begins with it, such as "${stripPrefix}/*"`)
}

/** The gateway answers health paths itself, before it looks for a route. */
function checkHealthPath(
  check: GatewayCheck,
  { match }: RouteConfig,
  { path, healthPaths }: { readonly path: string; readonly healthPaths: readonly string[] },
): void {
  if (match.path === undefined || !healthPaths.includes(match.path)) return
  const expected = 'another path, or gateway.healthPaths without this one: the gateway answers it itself'
  check.add(`${path}/match/path`, JSON.stringify(match.path), expected)
}

/** Checks the name under which something is counted. */
function checkResource(check: GatewayCheck, resource: string | undefined, path: string): void {
  if (resource === undefined) return
  const counted = parsePattern(resource)
  if (!('problem' in counted || counted.kind === 'all' || hasParameters(resource))) return
  const why = 'problem' in counted ? counted.problem : 'it stands for one thing, without "*" and parameters'
  check.add(path, JSON.stringify(resource), `a resource that rules can match: ${why}`)
}

function checkWebSocket(check: GatewayCheck, { webSocket = {}, limits }: RouteConfig, path: string): void {
  const { burst, messagesPerSecond, bytesPerSecond } = webSocket
  if (burst !== undefined && messagesPerSecond === undefined && bytesPerSecond === undefined) {
    check.add(`${path}/burst`, 'given without a rate', 'messagesPerSecond or bytesPerSecond beside it, or no burst')
  }
  for (const name of ['messageResource', 'byteResource'] as const) {
    checkResource(check, webSocket[name], `${path}/${name}`)
    if (limits !== 'off' || webSocket[name] === undefined) continue
    check.add(`${path}/${name}`, 'given beside "limits: off"', 'one of the two: nothing is limited on this route')
  }
}

function hasParameters(resource: string): boolean {
  return resource.split('/').some((part) => part === '*' || part.startsWith(':'))
}

/** Checks what happens by the status of responses, and what a denied request gets. */
function checkResponses(check: GatewayCheck, { charge, blockAfter, denial, limits }: RouteConfig, path: string): void {
  if (charge?.refund !== undefined && charge.only !== undefined) {
    check.add(`${path}/charge/only`, 'given beside "refund"', 'one of the two: "only" charges nothing else')
  }
  if (blockAfter !== undefined) {
    check.duration(`${path}/blockAfter/within`, blockAfter.within)
    check.duration(`${path}/blockAfter/blockFor`, blockAfter.blockFor)
    for (const [index, status] of (blockAfter.statuses ?? []).entries()) {
      if (status < 500) continue
      const expected = 'a status below 500: a failure of the upstream is not the fault of its callers'
      check.add(`${path}/blockAfter/statuses/${index}`, String(status), expected)
    }
  }
  if (limits === 'off') {
    for (const name of ['charge', 'blockAfter', 'denial'] as const) {
      if ({ charge, blockAfter, denial }[name] === undefined) continue
      check.add(`${path}/${name}`, 'given beside "limits: off"', 'one of the two: nothing is limited on this route')
    }
  }
  if (denial?.contentType !== undefined && denial.body === undefined) {
    check.add(`${path}/denial/contentType`, 'given without a body', 'body beside it, or no contentType')
  }
  const file = denial?.body === undefined ? undefined : namedFile(denial.body, check.folder)
  if (file !== undefined) readNamedFile(check, file, `${path}/denial/body`)
}

/** A route whose every request is taken by an earlier one can never be used. */
function checkReachable(
  check: GatewayCheck,
  { match }: RouteConfig,
  { path, taken }: { readonly path: string; readonly taken: Map<string, string> },
): void {
  const pattern = parsePattern(match.path ?? '*')
  if ('problem' in pattern) return
  const rest = JSON.stringify([
    pattern.canonical,
    [...(match.methods ?? ['*'])].map((method) => method.toUpperCase()).sort(),
    Object.entries(match.headers ?? {})
      .map(([name, value]) => [name.toLowerCase(), value])
      .sort(),
  ])
  const keys = (match.hosts ?? ['']).map((host) => `${host.toLowerCase()} ${rest}`)
  const others = keys.map((key) => taken.get(key))
  if (others.every((other) => other !== undefined)) {
    check.add(
      `${path}/match`,
      `the same as that of ${others[0]}`,
      'a match of its own: the first takes all its requests',
    )
  }
  for (const key of keys) if (!taken.has(key)) taken.set(key, path)
}
