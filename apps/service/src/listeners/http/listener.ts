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
import type { ConnectionLimit } from '../connection-limit.ts'
import type { DashboardFiles } from './dashboard-files.ts'
import { dashboardFolder, readDashboardFiles } from './dashboard-files.ts'
import { dashboardPages } from './dashboard-pages.ts'
import { operationRoutes, treatments } from './endpoints.ts'
import type { HttpTimeouts } from './http-server.ts'
import { HttpServer } from './http-server.ts'
import type { RequestObserver } from './request-observer.ts'
import { RequestServer } from './request-server.ts'
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
  readonly port: number
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

/** Makes the listener; nothing comes in before the server is started. */
export function httpListener(parts: HttpListenerParts): HttpServer {
  const { context, authenticator, observer, readiness } = parts
  const { settings, log, sleep } = context
  const document = serviceDocument(VERSION)
  const routes = operationRoutes({
    operations: Object.values<Operation>(OPERATIONS),
    handlers: { ...parts.handlers, ...healthHandlers(readiness), ...documentHandlers(document) },
    components: document.components.schemas,
    authenticator,
    sessions: parts.sessions,
    treatmentOf: treatments(context, parts.loopDelay),
    observer,
  })
  const hint = `Send checks to POST ${CHECK_PATH}; GET /openapi.json lists all operations.`
  const requests = new RequestServer({
    route: createRouter(routes, hint),
    findPage: settings.dashboard ? dashboardPages(builtFiles(), observer.recordOf('GET /')) : undefined,
    allowsHost: allowedHosts(settings),
    sleep,
    reportError: (error, details) => log.error('a request failed', { ...details, error: errorFields(error) }),
    observeRejection: (rejection) => observer.rejected(rejection),
    newRequestId: parts.newRequestId,
    atTurnEnd: parts.atTurnEnd,
  })
  return new HttpServer({
    host: settings.host,
    port: parts.port,
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
