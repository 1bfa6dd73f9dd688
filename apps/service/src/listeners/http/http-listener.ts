import type { Operation, OperationId } from '@sluice/contract'
import { CHECK_PATH, OPERATIONS } from '@sluice/contract'
import type { LoopDelay } from '@sluice/runtime'
import type { Authenticator } from '../../auth/authenticator.ts'
import type { Sessions } from '../../auth/sessions.ts'
import { errorFields } from '../../observability/error-fields.ts'
import type { ListenerOperation, OperationHandlers } from '../../operations/handler.ts'
import type { Readiness } from '../../operations/health.ts'
import { healthHandlers } from '../../operations/health.ts'
import { documentHandlers, serviceDocument, VERSION } from '../../operations/openapi.ts'
import type { ServiceContext } from '../../service-context.ts'
import type { ListenerAddress } from '../../settings/settings.ts'
import type { ConnectionLimit } from '../connection-limit.ts'
import type { ListenerName, ListenerPorts } from '../listener.ts'
import { listenAttempt, listenerAccess } from '../listener.ts'
import { ListenerTls } from '../tls-files.ts'
import type { DashboardFiles } from './dashboard-files.ts'
import { dashboardFolder, readDashboardFiles } from './dashboard-files.ts'
import { dashboardPages } from './dashboard-pages.ts'
import type { Endpoint } from './endpoints.ts'
import { operationRoutes, treatments } from './endpoints.ts'
import type { HttpTimeouts } from './http-server.ts'
import { HttpServer } from './http-server.ts'
import type { RequestObserver } from './request-observer.ts'
import { RequestServer } from './request-server.ts'
import type { Route, Router } from './router.ts'
import { allowedHosts, createRouter } from './router.ts'

/** What the listener of one thread is made of. */
export interface HttpListenerParts {
  readonly context: ServiceContext
  readonly authenticator: Authenticator
  readonly sessions: Sessions
  /** The handlers of all operations but those that the listener answers by itself. */
  readonly handlers: OperationHandlers<Exclude<OperationId, ListenerOperation>>
  /** Counts, times and logs every request. */
  readonly observer: RequestObserver
  readonly loopDelay: LoopDelay
  readonly newRequestId: () => string
  /** Runs something at the end of this turn of the event loop. */
  readonly atTurnEnd: (run: () => void) => void
  /** 0: any free port. */
  readonly ports: ListenerPorts
  readonly connectionLimit: ConnectionLimit
  readonly readiness: Readiness
  /** Whether other threads listen on the same port. */
  readonly sharesPort: boolean
}

/**
 * A whole request has seconds. A connection between requests has more than the minute after which most load balancers
 * drop theirs, so that it is they who end it and no request is sent into a closing connection.
 */
const TIMEOUTS: HttpTimeouts = { headersMs: 10_000, requestMs: 15_000, idleMs: 65_000, checkEveryMs: 1000 }

/** Longest wait of a stop for requests in flight; shorter than the time orchestrators give before they kill. */
const GRACE_MS = 10_000

/** The built dashboard; undefined when it was not built. */
function builtFiles(): DashboardFiles | undefined {
  const folder = dashboardFolder()
  return folder === undefined ? undefined : readDashboardFiles(folder)
}

/** Tags of the operations that stay on the public listener if the admin API has one of its own. */
const PUBLIC_TAGS: ReadonlySet<string> = new Set(['checks', 'proxies'])

/** Operations on every listener, whatever their tag. */
const ON_BOTH: ReadonlySet<string> = new Set<OperationId>(['ids', 'livez', 'readyz', 'openapi'])

/**
 * Makes the listener; with a port for the admin API, two: the public one without admin operations, metrics and
 * dashboard, and one with all. Nothing comes in before they are started.
 */
export function httpListeners(parts: HttpListenerParts): readonly HttpServer[] {
  const { context, authenticator, observer, readiness } = parts
  const { settings } = context
  const document = serviceDocument(VERSION)
  const treatmentOf = treatments(context, parts.loopDelay)
  const operations = Object.values<Operation>(OPERATIONS)
  const routesOn = (name: HttpListenerName, served: readonly Operation[]): readonly Route<Endpoint>[] => {
    const checkKey = listenerAccess(name, settings) === 'key'
    return operationRoutes({
      operations: served,
      handlers: { ...parts.handlers, ...healthHandlers(readiness), ...documentHandlers(document) },
      components: document.components.schemas,
      authenticator,
      sessions: parts.sessions,
      treatmentOf: (operation) => treatmentOf(operation, checkKey),
      observer,
    })
  }
  const { admin } = settings
  if (admin === undefined) return [serverOf('http', parts, createRouter(routesOn('http', operations), ALL_HERE))]
  const open = operations.filter(({ id, tag }) => PUBLIC_TAGS.has(tag) || ON_BOTH.has(id))
  return [
    serverOf('http', parts, createRouter(routesOn('http', open), adminElsewhere(admin))),
    serverOf('admin', parts, createRouter(routesOn('admin', operations), ALL_HERE)),
  ]
}

type HttpListenerName = Extract<ListenerName, 'http' | 'admin'>

const ALL_HERE = `Send checks to POST ${CHECK_PATH}; GET /openapi.json lists all operations.`

function adminElsewhere({ port }: ListenerAddress): string {
  const where = port === 0 ? 'which GET /readyz and the start-up output show' : `on port ${port}`
  return `Send checks to POST ${CHECK_PATH}. The admin API and metrics have a listener of their own, ${where}.`
}

function serverOf(name: HttpListenerName, parts: HttpListenerParts, route: Router<Endpoint>): HttpServer {
  const { context, observer } = parts
  const { settings, log, sleep } = context
  const attempt = listenAttempt(name, settings, parts.ports[name] ?? 0)
  // The dashboard calls the admin API of the listener that it comes from.
  const servesDashboard = settings.dashboard && (settings.admin === undefined || name === 'admin')
  const requests = new RequestServer({
    route,
    findPage: servesDashboard ? dashboardPages(builtFiles(), observer.recordOf('GET /')) : undefined,
    allowsHost: allowedHosts({ host: attempt.host, allowedHosts: settings.allowedHosts }),
    sleep,
    reportError: (error, details) => log.error('a request failed', { ...details, error: errorFields(error) }),
    observeRejection: (rejection) => observer.rejected(rejection),
    newRequestId: parts.newRequestId,
    atTurnEnd: parts.atTurnEnd,
  })
  return new HttpServer({
    name,
    attempt,
    tls: settings.httpTls && new ListenerTls({ listener: 'http', tls: settings.httpTls, sleep, log }),
    sharesPort: parts.sharesPort,
    requests,
    observeRejection: (status, remoteAddress) => observer.rejected({ operation: undefined, status, remoteAddress }),
    reportError: (error) => log.error('the server failed', { error: errorFields(error) }),
    timeouts: TIMEOUTS,
    connectionLimit: parts.connectionLimit,
    sleep,
    graceMs: GRACE_MS,
  })
}
