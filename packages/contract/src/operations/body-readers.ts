import type { NamedCaller } from '../admin/usage-bodies.ts'
import { parseResetRequest } from '../admin/usage-bodies.ts'
import type { ValidCheckRequest } from '../checks/check-request.ts'
import { parseBatchRequest, parseCheckRequest } from '../checks/check-request.ts'
import type { ValidEnvoyRequest } from '../checks/envoy-request.ts'
import { parseEnvoyRequest } from '../checks/envoy-request.ts'
import type { ReportRequest } from '../checks/report-bodies.ts'
import { parseReportRequest } from '../checks/report-bodies.ts'
import type { ReservationRequest, SettleRequest } from '../checks/reservation-bodies.ts'
import {
  parseAcquireRequest,
  parseReservationRequest,
  parseReserveRequest,
  parseSettleRequest,
} from '../checks/reservation-bodies.ts'
import type { Parsed } from '../schema/body-parser.ts'

interface ReadCheck {
  readonly request: ValidCheckRequest
}

interface ReadBatch {
  readonly requests: readonly ValidCheckRequest[]
}

/** What the handlers of operations with a reader of their own receive as the body. */
export interface ReadBodies {
  readonly check: ReadCheck
  readonly peek: ReadCheck
  readonly explain: ReadCheck
  readonly checkBatch: ReadBatch
  readonly checkBatchAlias: ReadBatch
  readonly reserve: ReadCheck & { readonly expiresAfterMs: number }
  readonly acquire: ReadCheck & { readonly maxWaitMs: number }
  readonly settle: SettleRequest
  readonly release: ReservationRequest
  readonly heartbeat: ReservationRequest
  readonly report: ReportRequest
  readonly shouldRateLimit: { readonly request: ValidEnvoyRequest }
  readonly reset: { readonly who: NamedCaller; readonly units: number | undefined; readonly note: string | undefined }
}

/**
 * How the bodies of checks, and of what names callers as checks do, are decoded: several times as fast as by their
 * schemas, with one name for each identity and defaults filled in. All other bodies are checked by their schema.
 */
export const BODY_READERS: { readonly [Id in keyof ReadBodies]: (body: unknown) => Parsed<ReadBodies[Id]> } = {
  check: parseCheckRequest,
  peek: parseCheckRequest,
  explain: parseCheckRequest,
  checkBatch: parseBatchRequest,
  checkBatchAlias: parseBatchRequest,
  reserve: parseReserveRequest,
  acquire: parseAcquireRequest,
  settle: parseSettleRequest,
  release: parseReservationRequest,
  heartbeat: parseReservationRequest,
  report: parseReportRequest,
  shouldRateLimit: parseEnvoyRequest,
  reset: parseResetRequest,
}
