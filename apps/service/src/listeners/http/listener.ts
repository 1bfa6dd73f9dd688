import type { Operation } from '@sluice/contract'
import { CHECK_PATH, OPERATIONS } from '@sluice/contract'
import type { LoopDelay } from '@sluice/runtime'
import { InFlight, LagGuard } from '@sluice/runtime'
import type { Authenticator } from '../../auth/authenticator.ts'
import { errorFields } from '../../observability/error-fields.ts'
import type { OperationHandlers } from '../../operations/handler.ts'
import type { CheckHealth } from '../../operations/health.ts'
import { healthHandlers, Readiness } from '../../operations/health.ts'
import { documentHandlers, serviceDocument, VERSION } from '../../operations/openapi.ts'
import type { ServiceContext } from '../../service-context.ts'
import { allowedHosts } from './allowed-hosts.ts'
import { ConnectionLimit, LOOPBACK_NETWORKS } from './connection-limit.ts'
import { EndpointServer } from './endpoint-server.ts'
import type { HttpTimeouts } from './http-server.ts'
import { HttpServer } from './http-server.ts'
import type { Treatment } from './operation-routes.ts'
import { operationRoutes } from './operation-routes.ts'
import { BodyReader } from './request-body.ts'
import type { RequestObserver } from './request-observer.ts'
import { createRouter } from './router.ts'

/** What the doors of one thread are made of. */
export interface HttpListenerParts {
  readonly context: ServiceContext
  readonly authenticator: Authenticator
  /** What answers, besides what the doors know themselves. */
  readonly handlers: OperationHandlers
  /** Is told of every request. */
  readonly observer: RequestObserver
  readonly checks: readonly CheckHealth[]
  readonly loopDelay: LoopDelay
  readonly newRequestId: () => string
  /** Runs something at the end of this turn of the event loop. */
  readonly atTurnEnd: (run: () => void) => void
  readonly port: number
  /** Whether other threads listen on the same port. */
  readonly sharesPort: boolean
}

/** Where requests come in, in one thread. */
export interface HttpListener {
  readonly server: HttpServer
  readonly readiness: Readiness
}

/**
 * A whole request has seconds. A connection between requests has more than the minute after which most load balancers drop
 * theirs, so that it is they who end it and no request is sent into a closing connection.
 */
const TIMEOUTS: HttpTimeouts = { headersMs: 10_000, requestMs: 15_000, idleMs: 65_000, checkEveryMs: 1000 }

/** Longest wait of a stop for requests in flight; shorter than the time orchestrators give before they kill. */
const GRACE_MS = 10_000

/** Requests that a thread has under way at most, other than checks, which have a bound of their own. */
const MOST_OTHERS_IN_FLIGHT = 200

/**
 * Bytes that the unfinished bodies of a thread hold at most: those of the check API, which needs no key on this machine, and those
 * of all other operations. Each holds four of the largest bodies.
 */
const MOST_BODY_BYTES = 33_554_432

/** Operations outside the check API whose bodies are checks, too, and are read by what reads those. */
const READ_AS_CHECKS: ReadonlySet<string> = new Set(['explain', 'reset'])

/** These end what a check has begun: to refuse them for lack of room would keep what is held, and there would be no end to it. */
const ENDINGS: ReadonlySet<string> = new Set(['settle', 'release', 'heartbeat'])

/** Answered whatever is going on, because somebody decides by them what is to become of this process. */
const ALWAYS_ANSWERED: ReadonlySet<string> = new Set(['livez', 'readyz', 'metrics'])

/** Probed by address, whatever names the service has. */
const PROBES: ReadonlySet<string> = new Set(['livez', 'readyz'])

/** Makes the doors; nothing comes in before the server is started. */
export function httpListener(parts: HttpListenerParts): HttpListener {
  const { context, authenticator, observer } = parts
  const { settings, log, sleep } = context
  const readiness = new Readiness(parts.checks)
  const document = serviceDocument(VERSION)
  const routes = operationRoutes({
    operations: Object.values<Operation>(OPERATIONS),
    handlers: observer.observed({ ...parts.handlers, ...healthHandlers(readiness), ...documentHandlers(document) }),
    components: document.components.schemas,
    authenticate: (exchange, role) => authenticator.authenticate(exchange, role),
    treatmentOf: treatments(parts),
  })
  const hint = `Checks are asked at POST ${CHECK_PATH}; GET /openapi.json lists everything there is.`
  const requests = new EndpointServer({
    route: createRouter(routes, hint),
    allowsHost: allowedHosts(settings),
    sleep,
    reportError: (error, details) => log.error('a request failed', { ...details, error: errorFields(error) }),
    observeRejection: (refusal) => observer.refused(refusal),
    newRequestId: parts.newRequestId,
    atTurnEnd: parts.atTurnEnd,
  })
  const server = new HttpServer({
    host: settings.host,
    port: parts.port,
    sharesPort: parts.sharesPort,
    requests,
    observeRejection: (status, remoteAddress) => observer.refused({ operation: undefined, status, remoteAddress }),
    reportError: (error) => log.error('the server failed', { error: errorFields(error) }),
    timeouts: TIMEOUTS,
    connectionLimit: new ConnectionLimit({
      perAddress: settings.maxConnectionsPerAddress,
      exempt: [...LOOPBACK_NETWORKS, ...settings.trustedProxies],
    }),
    sleep,
    graceMs: GRACE_MS,
  })
  return { server, readiness }
}

/**
 * So late the event loop must be before checks are refused for lack of capacity. A collection of garbage or a neighbour on the
 * same machine takes a tenth of that now and then; who is refused for it would only ask again.
 */
const LATE_FROM_MS = 1000

function treatments({ context, loopDelay }: HttpListenerParts): (operation: Operation) => Treatment {
  const { clock, settings, store } = context
  // What a remote store is asked in one turn goes out together anyway.
  const answersAtTurnEnd = store.mode === 'sync'
  const guard = new LagGuard({ delay: loopDelay, nowMs: () => clock.nowMicros() / 1000, lateFromMs: LATE_FROM_MS })
  const checks = new InFlight({ most: settings.maxInFlight, isOverloaded: () => guard.isLate() })
  const endings = new InFlight({ most: settings.maxInFlight })
  const others = new InFlight({ most: MOST_OTHERS_IN_FLIGHT })
  const checkBodies = new BodyReader(MOST_BODY_BYTES)
  const otherBodies = new BodyReader(MOST_BODY_BYTES)
  return ({ id, tag }) => {
    if (tag === 'checks') {
      const needsKey = settings.checkKey
      const inFlightLimit = ENDINGS.has(id) ? endings : checks
      return { inFlightLimit, bodies: checkBodies, needsKey, checksItself: true, hasRequestId: false, answersAtTurnEnd }
    }
    const inFlightLimit = ALWAYS_ANSWERED.has(id) ? undefined : others
    return {
      inFlightLimit,
      bodies: otherBodies,
      needsKey: false,
      checksItself: READ_AS_CHECKS.has(id),
      hasRequestId: true,
      takesAnyHost: PROBES.has(id),
    }
  }
}
