import type { AlertBounds, TopAnswer } from '@sluice/contract'
import { MICROS_PER_MS } from '@sluice/core/internal'
import { renderMetrics } from '@sluice/runtime'
import type { ClusterFigures } from '../../observability/cluster/cluster-view.ts'
import { planOverview, readOverview, readShadow } from '../../observability/cluster/overview.ts'
import { planHistory, readHistory } from '../../observability/history/history.ts'
import type { RollupStore } from '../../observability/history/rollup-recorder.ts'
import { askReport } from '../../observability/metrics-aggregator.ts'
import { shownCallers } from '../../observability/top-callers.ts'
import type { ServiceContext } from '../../service-context.ts'
import type { Answer, OperationHandlers, Reply, RequestContext } from '../handler.ts'
import { adminAnswer } from '../handler.ts'
import { problemAnswer } from '../problems.ts'
import type { FeedReader } from './event-feed.ts'
import { StreamLimit } from './event-feed.ts'
import type { ReaderKeys } from './feed-readers.ts'
import { FeedTable, figuresOf, nodeOf, readerOf } from './feed-readers.ts'
import type { FigureFeedParts } from './live-feed.ts'
import { liveFeed, overviewFeed } from './live-feed.ts'

/** What these handlers need of the context. */
export type ObservabilityContext = Pick<ServiceContext, 'clock' | 'sleep' | 'log' | 'threads'>

/** What they need besides. */
export interface ObservabilityParts {
  readonly rollups: RollupStore
  /** Says whether the key of a reader is still valid. */
  readonly keys: ReaderKeys
  readonly alertBounds: AlertBounds
}

/** Streams that one thread serves at once. */
const MOST_STREAMS = 64

/** How often figures of several nodes change. */
const SHARED_EVERY_MS = 1000

const NOT_STORED = { 'Cache-Control': 'no-store' }

/** The answer when there are too many streams. */
export const TOO_MANY_STREAMS: Answer = problemAnswer('SLUICE_HTTP_OVERLOADED', {
  detail: 'There are too many readers already. Close one of them, or try again later.',
  headers: { 'Retry-After': '5', ...NOT_STORED },
})

/** The operations that show what happens. */
export type ObservabilityOperation =
  | 'metrics'
  | 'live'
  | 'top'
  | 'history'
  | 'overview'
  | 'overviewLive'
  | 'shadowSeries'
  | 'nodes'

/** Shows what happens: metrics, a live stream, history, and the callers that are denied most. */
export function observabilityHandlers(
  context: ObservabilityContext,
  parts: ObservabilityParts,
): OperationHandlers<ObservabilityOperation> {
  const { clock, threads } = context
  const { rollups, alertBounds } = parts
  const nowMs = (): number => Math.floor(clock.nowMicros() / MICROS_PER_MS)
  const figures = (node: string | undefined): Promise<ClusterFigures> => figuresOf(threads, node)
  return {
    ...streamHandlers(context, parts),
    metrics: async ({ headers }) => {
      const { contentType, body } = renderMetrics((await askReport(threads)).metrics, headers.accept)
      return textAnswer(body, contentType)
    },
    top: async ({ parameters: { dimension, limit, node } }) => {
      const { top, nodes } = await figures(node)
      const answer: TopAnswer = {
        spanMs: Math.max(0, nowMs() - top.startedAt),
        nodes,
        dimensions: shownCallers(top, { dimension, limit }),
      }
      return adminAnswer(answer)
    },
    history: async ({ parameters }) => {
      const node = await nodeOf(threads, parameters.node)
      return adminAnswer(await readHistory(rollups, planHistory(parameters, nowMs()), node))
    },
    overview: async ({ parameters }) => {
      const plan = planOverview(parameters, nowMs())
      const [now, node] = [await figures(parameters.node), await nodeOf(threads, parameters.node)]
      const { resources } = parameters
      return adminAnswer(await readOverview(rollups, { plan, now, node, resources, alertBounds, nowMs: nowMs() }))
    },
    shadowSeries: async ({ parameters }) => {
      const plan = planOverview(parameters, nowMs())
      const { number: version } = parameters
      return adminAnswer(await readShadow(rollups, { plan, version, node: await nodeOf(threads, parameters.node) }))
    },
    nodes: async () => adminAnswer(await threads.callMain('cluster.nodes')),
  }
}

/** Streams of samples and of updates. Readers with the same parameters share their events. */
function streamHandlers(
  context: ObservabilityContext,
  { keys }: ObservabilityParts,
): OperationHandlers<'live' | 'overviewLive'> {
  const { clock, sleep, log, threads } = context
  const nowMs = (): number => clock.nowMicros() / MICROS_PER_MS
  const feeds = new FeedTable(new StreamLimit(MOST_STREAMS))
  const reader = (request: RequestContext): FeedReader => readerOf(request, keys, nowMs)
  const partsOf = (node: string | undefined): FigureFeedParts => {
    return { figures: () => figuresOf(threads, node), limit: feeds.limit, nowMs, sleep, log }
  }
  return {
    live: (request) => {
      const { node } = request.parameters
      const open = (): Reply =>
        feeds.get(`live ${node ?? ''}`, () => liveFeed(partsOf(node))).open(reader(request)) ?? TOO_MANY_STREAMS
      return node === undefined ? open() : figuresOf(threads, node).then(open)
    },
    overviewLive: async (request) => {
      const { node, everyMs: wantedMs, resources } = request.parameters
      const { nodes } = await figuresOf(threads, node)
      // Other nodes publish once a second.
      const everyMs = nodes === 1 ? wantedMs : Math.max(wantedMs, SHARED_EVERY_MS)
      const key = `overview ${everyMs} ${resources} ${node ?? ''}`
      const stream = feeds.get(key, () => overviewFeed(partsOf(node), { everyMs, resources })).open(reader(request))
      return stream ?? TOO_MANY_STREAMS
    },
  }
}

function textAnswer(body: string, contentType: string): Answer {
  const headers = { 'Content-Type': contentType, 'Content-Length': String(Buffer.byteLength(body)), ...NOT_STORED }
  return { status: 200, headers, body }
}
