import type { TopAnswer } from '@sluice/contract'
import { isSluiceError } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import { renderMetrics } from '@sluice/runtime'
import type { ApiKeyCache } from '../../auth/api-key-cache.ts'
import { planHistory, readHistory } from '../../observability/history/history.ts'
import type { RollupStore } from '../../observability/history/rollup-recorder.ts'
import { askReport } from '../../observability/metrics-aggregator.ts'
import { shownCallers } from '../../observability/top-callers.ts'
import type { ServiceContext } from '../../service-context.ts'
import type { Answer, OperationHandlers, OperationRequest } from '../handler.ts'
import { jsonAnswer } from '../handler.ts'
import { problemAnswer } from '../problems.ts'
import { LiveFeed } from './live-feed.ts'

/** What these handlers need of the context. */
export type ObservabilityContext = Pick<ServiceContext, 'clock' | 'sleep' | 'log' | 'secret' | 'threads'>

/** What they need besides. */
export interface ObservabilityParts {
  readonly rollups: RollupStore
  /** Says whether whoever reads a stream still may. */
  readonly keys: Pick<ApiKeyCache, 'find'>
}

/** Streams that one thread serves at once. */
const MOST_STREAMS = 64

const DEFAULT_CALLERS = 10

const NOT_STORED = { 'Cache-Control': 'no-store' }

const TOO_MANY_STREAMS = problemAnswer('SLUICE_HTTP_OVERLOADED', {
  detail: `There are ${MOST_STREAMS} readers already. Close one of them, or try again later.`,
  headers: { 'Retry-After': '5', ...NOT_STORED },
})

const NO_HISTORY = problemAnswer('SLUICE_HTTP_CONFIG_UNAVAILABLE', {
  detail: 'The database that history is kept in cannot be reached. Try again; what happens now is at GET /admin/live.',
  headers: { 'Retry-After': '2', ...NOT_STORED },
})

/** Shows what happens: metrics, a live stream, history, and the callers that are refused most. */
export function observabilityHandlers(context: ObservabilityContext, parts: ObservabilityParts): OperationHandlers {
  const { clock, sleep, log, secret, threads } = context
  const { rollups, keys } = parts
  const report = () => askReport(threads)
  const nowMs = (): number => Math.floor(clock.nowMicros() / MICROS_PER_MS)
  const feed = new LiveFeed({ report, clock, sleep, log, secret, mostStreams: MOST_STREAMS })
  return {
    'GET /metrics': async ({ headers }) => {
      const { contentType, body } = renderMetrics((await report()).metrics, headers.accept)
      return textAnswer(body, contentType)
    },
    'GET /admin/live': ({ headers, principal }) => {
      const lastEventId = headers['last-event-id']
      const mayRead = (): boolean => principal === undefined || isValid(keys, principal.id, nowMs())
      const stream = feed.open({ lastEventId: typeof lastEventId === 'string' ? lastEventId : undefined, mayRead })
      return stream ?? TOO_MANY_STREAMS
    },
    'GET /admin/top': async ({ query }) => {
      const limit = numberIn(query, 'limit') ?? DEFAULT_CALLERS
      const { top } = await report()
      const dimension = query.get('dimension') ?? undefined
      const answer: TopAnswer = {
        spanMs: Math.max(0, nowMs() - top.startedAt),
        dimensions: shownCallers(top, { dimension, limit, secret }),
      }
      return jsonAnswer(200, JSON.stringify(answer), { headers: NOT_STORED })
    },
    'GET /admin/history': async ({ query }) => {
      const plan = planHistory(
        { ...optional('from', query), ...optional('to', query), ...optional('stepMs', query) },
        nowMs(),
      )
      try {
        return jsonAnswer(200, JSON.stringify(await readHistory(rollups, plan)), { headers: NOT_STORED })
      } catch (error) {
        if (isSluiceError(error, 'SLUICE_CONFIG_UNAVAILABLE')) return NO_HISTORY
        throw error
      }
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

function optional<Name extends string>(
  name: Name,
  query: OperationRequest['query'],
): { readonly [N in Name]?: number } {
  const value = numberIn(query, name)
  return (value === undefined ? {} : { [name]: value }) as { readonly [N in Name]?: number }
}

/** A parameter that the table of operations says is a number, and that has been checked by it. */
function numberIn(query: OperationRequest['query'], name: string): number | undefined {
  const text = query.get(name)
  return text === null ? undefined : Number(text)
}
