import type { DecisionRecord, DecisionUpdate } from '@sluice/contract'
import { checkAnswer } from '@sluice/contract'
import type { Clock } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import type { PolicyEngine, PolicyRequest } from '@sluice/core/policy'
import type { Logger, Sleep } from '@sluice/runtime'
import type { ClusterDecisionMessages, ClusterDecisionQuery } from '../../observability/cluster/process-cluster.ts'
import type { DecisionMessages } from '../../observability/decision-sample.ts'
import type { ThreadGroup } from '../../thread-messages/message-bus.ts'
import { withInstants } from '../admin/usage-explain-reset.ts'
import type { OperationHandlers } from '../handler.ts'
import { adminAnswer, pageAnswer } from '../handler.ts'
import { pageOfList } from '../paging.ts'
import { notFound } from '../problems.ts'
import { EventFeed, StreamLimit } from './event-feed.ts'
import type { ReaderKeys } from './feed-readers.ts'
import { FeedTable, readerOf } from './feed-readers.ts'
import { TOO_MANY_STREAMS } from './metrics.ts'

/** The operations on recent decisions. */
type DecisionOperation = 'listDecisions' | 'liveDecisions' | 'explainDecision'

/** What these handlers need. */
export interface DecisionHandlerParts {
  readonly threads: ThreadGroup<DecisionMessages & ClusterDecisionMessages>
  readonly engine: Pick<PolicyEngine, 'explain'>
  readonly keys: ReaderKeys
  readonly clock: Clock
  readonly sleep: Sleep
  readonly log: Logger
}

/** Decisions that one answer chooses its page from. */
const MOST_LISTED = 5000

/** Decisions in one event. */
const MOST_IN_EVENT = 50

const MOST_STREAMS = 32

const EVERY_MS = 1000

/** Recent decisions of all nodes, their stream, and why each was made. */
export function decisionHandlers(parts: DecisionHandlerParts): OperationHandlers<DecisionOperation> {
  const { threads, engine, keys, clock } = parts
  const nowMs = (): number => clock.nowMicros() / MICROS_PER_MS
  const feeds = new FeedTable(new StreamLimit(MOST_STREAMS))
  const list = (query: Omit<ClusterDecisionQuery, 'most'>): Promise<readonly DecisionRecord[]> =>
    threads.callMain('cluster.decisions', { ...query, most: MOST_LISTED })
  return {
    listDecisions: async ({ parameters }) => {
      const { after: _after, limit: _limit, ...query } = parameters
      return pageAnswer(pageOfList(await list(query), ({ id }) => id, parameters))
    },

    liveDecisions: (request) => {
      const { parameters } = request
      const create = (): EventFeed<readonly DecisionRecord[]> => decisionFeed(parts, feeds.limit, parameters)
      const stream = feeds.get(JSON.stringify(parameters), create).open(readerOf(request, keys, nowMs))
      return stream ?? TOO_MANY_STREAMS
    },

    explainDecision: async ({ parameters: { id } }) => {
      const decision = (await list({})).find((record) => record.id === id)
      if (decision === undefined) throw notFound('decision of this id in the sample; it is kept for 15 minutes')
      const { replies } = await threads.gather('decisions.call', id)
      const own = replies.find((request) => request !== undefined)
      const { decision: now, rules, ...about } = await engine.explain(own ?? shownCall(decision))
      const explanation = { ...about, rules: rules.map(withInstants), decision: checkAnswer(now, now.dimension) }
      const unknown = own === undefined ? decision.hidden : []
      return adminAnswer({ decision, explanation, unknown })
    },
  }
}

/** Tells each second which decisions are new. */
function decisionFeed(
  { threads, clock, sleep, log }: DecisionHandlerParts,
  limit: StreamLimit,
  query: Omit<ClusterDecisionQuery, 'most'>,
): EventFeed<readonly DecisionRecord[]> {
  const nowMs = (): number => clock.nowMicros() / MICROS_PER_MS
  let since = Math.floor(nowMs())
  const told = new Set<string>()
  return new EventFeed({
    event: 'decisions',
    everyMs: EVERY_MS,
    ...{ limit, nowMs, sleep, log },
    take: async () => {
      // Those of other nodes come up to 10 seconds late.
      const from = since - LATE_MS
      since = Math.floor(nowMs())
      return await threads.callMain('cluster.decisions', { ...query, from, most: MOST_LISTED })
    },
    dataOf: (_before, now): DecisionUpdate | undefined => {
      const fresh = now.filter(({ id }) => !told.has(id))
      told.clear()
      for (const { id } of now) told.add(id)
      if (fresh.length === 0) return undefined
      // Denials first: they are what somebody looks for.
      const chosen = fresh
        .toSorted((one, other) => Number(one.allowed) - Number(other.allowed) || other.at - one.at)
        .slice(0, MOST_IN_EVENT)
        .toSorted((one, other) => one.at - other.at)
      return { decisions: chosen, skipped: fresh.length - chosen.length }
    },
  })
}

const LATE_MS = 15_000

/** The call of a decision of another node, as far as it may be known here. */
function shownCall({ request }: DecisionRecord): PolicyRequest {
  const { tokens, ...call } = request
  return { ...call, ...(tokens === undefined ? {} : { cost: tokens }) } as PolicyRequest
}
