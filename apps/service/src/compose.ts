import type { Clock } from '@sluice/core'
import { createLimiter } from '@sluice/core'
import type { Sleep } from '@sluice/runtime'
import { StartupGraph } from '@sluice/runtime'
import { checkRoute } from './check-api/check-route.ts'
import { userChecker } from './check-api/checker.ts'
import type { NamedRule } from './check-api/named-rule.ts'
import { DEFAULT_RULE } from './check-api/named-rule.ts'
import { livenessRoute } from './health/liveness.ts'
import type { HttpTimeouts } from './http/http-server.ts'
import { HttpServer } from './http/http-server.ts'
import { createRouter } from './http/router.ts'
import type { Settings } from './settings.ts'

/** Everything the service needs from outside. */
export interface ServiceParts {
  readonly settings: Settings
  readonly clock: Clock
  readonly sleep: Sleep
  /** Told of failures that no client is at fault for. */
  readonly reportError: (error: unknown) => void
}

/** The service, wired. `start` and `stop` are those of a `StartupGraph`. */
export interface Service {
  start(): Promise<void>
  stop(): Promise<void>
  /** The port it listens on; undefined unless it is started. */
  readonly port: number | undefined
  readonly rule: NamedRule
}

/**
 * A whole request has seconds. A connection between requests has more than the minute after which most load balancers drop
 * theirs, so that it is they who end it and no request is sent into a closing connection.
 */
const TIMEOUTS: HttpTimeouts = { headersMs: 10_000, requestMs: 15_000, idleMs: 65_000, checkEveryMs: 1000 }

/** Longest wait of a stop for requests in flight; shorter than the time orchestrators give before they kill. */
const GRACE_MS = 10_000

/** Wires the service; nothing runs before `start`. */
export function composeService({ settings, clock, sleep, reportError }: ServiceParts): Service {
  const rule = DEFAULT_RULE
  const limiter = createLimiter({ ...rule.rule, name: rule.name, clock })
  const route = createRouter([checkRoute(userChecker(limiter), clock), livenessRoute])
  const server = new HttpServer({ ...settings, route, reportError, timeouts: TIMEOUTS, sleep, graceMs: GRACE_MS })
  const graph = new StartupGraph([
    { name: 'limiter', stop: () => limiter.close() },
    { name: 'http', dependsOn: ['limiter'], start: () => server.start(), stop: () => server.stop() },
  ])
  return {
    start: () => graph.start(),
    stop: () => graph.stop(),
    get port() {
      return server.port
    },
    rule,
  }
}
