import type { TopAnswer } from '@sluice/contract'
import { MICROS_PER_MS } from '@sluice/core/internal'
import { renderMetrics } from '@sluice/runtime'
import type { ApiKeyCache } from '../../auth/authenticator.ts'
import { planHistory, readHistory } from '../../observability/history/history.ts'
import type { RollupStore } from '../../observability/history/rollup-recorder.ts'
import { askReport } from '../../observability/metrics-aggregator.ts'
import { shownCallers } from '../../observability/top-callers.ts'
import type { ServiceContext } from '../../service-context.ts'
import type { Answer, OperationHandlers } from '../handler.ts'
import { jsonAnswer } from '../handler.ts'
import { problemAnswer } from '../problems.ts'
import { LiveFeed } from './live-feed.ts'

/** What these handlers need of the context. */
export type ObservabilityContext = Pick<ServiceContext, 'clock' | 'sleep' | 'log' | 'secret' | 'threads'>

/** What they need besides. */
export interface ObservabilityParts {
  readonly rollups: RollupStore
  /** Says whether the key of a reader is still valid. */
  readonly keys: Pick<ApiKeyCache, 'find'>
}

/** Streams that one thread serves at once. */
const MOST_STREAMS = 64

const NOT_STORED = { 'Cache-Control': 'no-store' }

const TOO_MANY_STREAMS = problemAnswer('SLUICE_HTTP_OVERLOADED', {
  detail: `There are ${MOST_STREAMS} readers already. Close one of them, or try again later.`,
  headers: { 'Retry-After': '5', ...NOT_STORED },
})

/** The operations that show what happens. */
export type ObservabilityOperation = 'metrics' | 'live' | 'top' | 'history'

/** Shows what happens: metrics, a live stream, history, and the callers that are denied most. */
export function observabilityHandlers(
  context: ObservabilityContext,
  parts: ObservabilityParts,
): OperationHandlers<ObservabilityOperation> {
  const { clock, sleep, log, secret, threads } = context
  const { rollups, keys } = parts
  const report = () => askReport(threads)
  const nowMs = (): number => Math.floor(clock.nowMicros() / MICROS_PER_MS)
  const feed = new LiveFeed({ report, clock, sleep, log, secret, mostStreams: MOST_STREAMS })
  return {
    metrics: async ({ headers }) => {
      const { contentType, body } = renderMetrics((await report()).metrics, headers.accept)
      return textAnswer(body, contentType)
    },
    live: ({ headers, principal }) => {
      const lastEventId = headers['last-event-id']
      const mayRead = (): boolean =>
        principal === undefined || (principal.session?.goesOn() ?? isValid(keys, principal.id, nowMs()))
      const stream = feed.open({ lastEventId: typeof lastEventId === 'string' ? lastEventId : undefined, mayRead })
      return stream ?? TOO_MANY_STREAMS
    },
    top: async ({ parameters: { dimension, limit } }) => {
      const { top } = await report()
      const answer: TopAnswer = {
        spanMs: Math.max(0, nowMs() - top.startedAt),
        dimensions: shownCallers(top, { dimension, limit, secret }),
      }
      return jsonAnswer(200, JSON.stringify(answer), { headers: NOT_STORED })
    },
    history: async ({ parameters }) => {
      const plan = planHistory(parameters, nowMs())
      return jsonAnswer(200, JSON.stringify(await readHistory(rollups, plan)), { headers: NOT_STORED })
    },
  }
}

function textAnswer(body: string, contentType: string): Answer {
  const headers = { 'Content-Type': contentType, 'Content-Length': String(Buffer.byteLength(body)), ...NOT_STORED }
  return { status: 200, headers, body }
}

/** Whether a key still opens what it opened. */
function isValid(keys: Pick<ApiKeyCache, 'find'>, id: string, nowMs: number): boolean {
  const key = keys.find(id)
  if (key === undefined || key.revokedAt !== undefined) return false
  return key.expiresAt === undefined || key.expiresAt > nowMs
}
