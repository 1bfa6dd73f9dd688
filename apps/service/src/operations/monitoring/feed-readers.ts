import type { NodeStatus } from '@sluice/contract'
import type { NowMs } from '@sluice/runtime'
import type { ApiKeyCache } from '../../auth/authenticator.ts'
import type { ClusterFigures, ClusterMessages } from '../../observability/cluster/cluster-view.ts'
import type { ThreadGroup } from '../../thread-messages/message-bus.ts'
import type { RequestContext } from '../handler.ts'
import { notFound } from '../problems.ts'
import type { EventFeed, FeedReader, StreamLimit } from './event-feed.ts'

/** The keys by which a reader may go on. */
export type ReaderKeys = Pick<ApiKeyCache, 'find'>

/** The main thread, where the figures of all nodes are. */
export type ClusterThreads = Pick<ThreadGroup<ClusterMessages>, 'callMain'>

/** Feeds by what they tell. Those without readers are forgotten. */
export class FeedTable {
  readonly limit: StreamLimit
  readonly #feeds = new Map<string, EventFeed<never>>()

  constructor(limit: StreamLimit) {
    this.limit = limit
  }

  get<Taken>(key: string, create: () => EventFeed<Taken>): EventFeed<Taken> {
    const known = this.#feeds.get(key) as EventFeed<Taken> | undefined
    if (known !== undefined) return known
    for (const [other, feed] of this.#feeds) if (feed.isIdle) this.#feeds.delete(other)
    const feed = create()
    this.#feeds.set(key, feed as unknown as EventFeed<never>)
    return feed
  }
}

/** The reader of a request: it may read for as long as its key or session is valid. */
export function readerOf({ headers, principal }: RequestContext, keys: ReaderKeys, nowMs: NowMs): FeedReader {
  const lastEventId = headers['last-event-id']
  return {
    lastEventId: typeof lastEventId === 'string' ? lastEventId : undefined,
    mayRead: () => principal === undefined || (principal.session?.goesOn() ?? isValid(keys, principal.id, nowMs())),
  }
}

/** Whether a key still opens what it opened. */
function isValid(keys: ReaderKeys, id: string, nowMs: number): boolean {
  const key = keys.find(id)
  if (key === undefined || key.revokedAt !== undefined) return false
  return key.expiresAt === undefined || key.expiresAt > nowMs
}

/** Figures of all nodes, or of the one that a parameter names. */
export async function figuresOf(threads: ClusterThreads, node: string | undefined): Promise<ClusterFigures> {
  const figures = await threads.callMain('cluster.figures', node)
  if (figures === undefined) throw noNode()
  return figures
}

/** The node that a parameter names; undefined for all. */
export async function nodeOf(threads: ClusterThreads, node: string | undefined): Promise<NodeStatus | undefined> {
  if (node === undefined) return undefined
  const { nodes } = await threads.callMain('cluster.nodes')
  const found = nodes.find(({ id, name, isSelf }) => (node === 'self' ? isSelf : id === node || name === node))
  if (found === undefined) throw noNode()
  return found
}

function noNode(): Error {
  return notFound('node of this id or name; GET /admin/nodes lists all there are')
}
