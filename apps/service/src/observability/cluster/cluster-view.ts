import type { Alert, NodeStatus, NodesAnswer } from '@sluice/contract'
import type { Logger, NowMs, Sleep } from '@sluice/runtime'
import { errorFields } from '../error-fields.ts'
import type { TrafficTotals } from '../history/traffic-totals.ts'
import { addTraffic, NO_TRAFFIC, trafficSince } from '../history/traffic-totals.ts'
import type { TopCallersSnapshot } from '../top-callers.ts'
import { mergeTopCallers } from '../top-callers.ts'
import type { ClusterNow, NodeReport } from './node-report.ts'
import { nowOf } from './node-report.ts'
import type { PublishedReport, ReportExchange } from './report-exchange.ts'

/** Figures of all nodes, or of one: plain data. */
export interface ClusterFigures extends ClusterNow {
  /** Never go down, whichever nodes come and go. */
  readonly totals: TrafficTotals
  readonly top: TopCallersSnapshot
  /** Alerts that hold on any of these nodes. */
  readonly alerts: readonly Alert[]
}

/** Messages about all nodes, to the main thread. */
export interface ClusterMessages {
  /** Figures of the node with this id or name, `self`, or of all without one. Undefined if there is no such node. */
  'cluster.figures': (node?: string) => ClusterFigures | undefined
  'cluster.nodes': () => NodesAnswer
}

/** Options of {@link ClusterView}. */
export interface ClusterViewParts {
  /** Id of this node. */
  readonly node: string
  /** Makes the report of this node. `sequence`: its number. */
  readonly report: (sequence: number) => Promise<NodeReport>
  /** Undefined for a node that shares with none. */
  readonly exchange: ReportExchange | undefined
  /** Publishes decisions; called at the interval of their kind while another node is known. */
  readonly publishDecisions: (exchange: ReportExchange) => Promise<void>
  readonly nowMs: NowMs
  readonly sleep: Sleep
  readonly log: Logger
}

interface SeenNode {
  readonly report: NodeReport
  /** When its sequence number was seen first, by the clock of this node. */
  readonly changedAt: number
}

/** A lost node is listed for so long. */
const LISTED_MS = 60_000

/** A report that is seen for the first time and older than this is of a node that was gone before. */
const STALE_MS = 60_000

/** How often a node that shares with none looks at itself, for its rates. */
const ALONE_EVERY_MS = 1000

/** Only one of this many failures in a row is logged: one per minute. */
const TOLD_EVERY = 60

/** The figures of all nodes as this one sees them. In the main thread. */
export class ClusterView {
  readonly #parts: ClusterViewParts
  readonly #seen = new Map<string, SeenNode>()
  /** What each node had counted when it was last added up. */
  readonly #counted = new Map<string, TrafficTotals>()
  readonly #stopped = new AbortController()
  #sum: TrafficTotals = NO_TRAFFIC
  #sequence = 0
  #readAt = Number.NEGATIVE_INFINITY
  #reading: Promise<void> | undefined
  #decisionsAt = 0
  #problem: string | undefined
  #failures = 0
  #running: Promise<void> | undefined

  constructor(parts: ClusterViewParts) {
    this.#parts = parts
  }

  start(): void {
    this.#running ??= this.#run()
  }

  /** Removes the report of this node. */
  async stop(): Promise<void> {
    if (this.#running === undefined) return
    this.#stopped.abort()
    await this.#running
    try {
      await this.#parts.exchange?.remove(this.#parts.node, ['report', 'decisions'])
    } catch {
      // It ends by itself.
    }
  }

  /** See {@link ClusterMessages}. */
  async figures(wanted?: string): Promise<ClusterFigures | undefined> {
    const own = await this.#refreshOwn()
    await this.#readOthers()
    const others = this.#live()
    const all = [own, ...others]
    this.#addUp(all)
    const isSelf = wanted === 'self' || wanted === own.id || wanted === own.name
    const chosen = wanted === undefined ? all : all.filter((report) => report === own && isSelf)
    const named = chosen.length > 0 ? chosen : others.filter(({ id, name }) => id === wanted || name === wanted)
    if (named.length === 0) return undefined
    return {
      ...nowOf(named),
      totals: wanted === undefined ? this.#sum : named.map(({ totals }) => totals).reduce(addTraffic),
      top: mergeTopCallers(named.map(({ top }) => top)),
      alerts: alertsOf(named),
    }
  }

  /** See {@link ClusterMessages}. */
  async nodes(): Promise<NodesAnswer> {
    const own = await this.#refreshOwn()
    await this.#readOthers()
    const at = Math.floor(this.#parts.nowMs())
    const others = [...this.#seen.values()]
      .filter(({ changedAt }) => changedAt + LISTED_MS > at)
      .map(({ report, changedAt }) =>
        statusOf(report, { lastSeenAt: Math.floor(changedAt), isLost: this.#isLost(changedAt) }),
      )
      .toSorted((one, other) => (one.name + one.id < other.name + other.id ? -1 : 1))
    return {
      at,
      isShared: this.#parts.exchange !== undefined,
      nodes: [{ ...statusOf(own, { lastSeenAt: at, isLost: false }), isSelf: true }, ...others],
      ...(this.#problem === undefined ? {} : { problem: this.#problem }),
    }
  }

  /** Ids of other nodes that are not lost. */
  async otherNodes(): Promise<readonly string[]> {
    await this.#readOthers()
    return this.#live().map(({ id }) => id)
  }

  async #run(): Promise<void> {
    const { exchange, sleep } = this.#parts
    const { signal } = this.#stopped
    while (!signal.aborted) {
      await this.#publish()
      try {
        await sleep(exchange?.everyMs.report ?? ALONE_EVERY_MS, signal)
      } catch {
        return
      }
    }
  }

  /** Never rejects. */
  async #publish(): Promise<void> {
    const { exchange, node, nowMs, log } = this.#parts
    try {
      const own = await this.#refreshOwn()
      if (exchange === undefined) return
      await exchange.publish('report', node, JSON.stringify(own))
      if (this.#decisionsAt + exchange.everyMs.decisions <= nowMs()) {
        this.#decisionsAt = nowMs()
        if ((await this.otherNodes()).length > 0) await this.#parts.publishDecisions(exchange)
      }
      this.#failures = 0
    } catch (error) {
      if (this.#failures % TOLD_EVERY === 0) {
        log.warn('could not publish the figures of this node; retrying', { error: errorFields(error) })
      }
      this.#failures++
    }
  }

  async #refreshOwn(): Promise<NodeReport> {
    this.#sequence++
    return await this.#parts.report(this.#sequence)
  }

  /** At most once per interval. Never rejects: without an answer, the nodes known so far become lost. */
  async #readOthers(): Promise<void> {
    const { exchange, nowMs } = this.#parts
    if (exchange === undefined) return
    // Half an interval earlier, so that a reader at the same interval misses none.
    if (this.#reading === undefined && this.#readAt + exchange.everyMs.report / 2 <= nowMs()) {
      this.#reading = this.#read(exchange).finally(() => {
        this.#readAt = nowMs()
        this.#reading = undefined
      })
    }
    await this.#reading
  }

  async #read(exchange: ReportExchange): Promise<void> {
    try {
      this.#note(await exchange.readAll('report'))
      this.#problem = undefined
    } catch (error) {
      this.#problem = `The figures of other nodes cannot be read: ${error instanceof Error ? error.message : 'error'}`
    }
  }

  #note(published: readonly PublishedReport[]): void {
    const { node, nowMs } = this.#parts
    const now = nowMs()
    const there = new Set(published.map((one) => one.node))
    for (const one of published) {
      if (one.node === node) continue
      const report = JSON.parse(one.body) as NodeReport
      const before = this.#seen.get(one.node)
      if (before === undefined && Math.abs(now - report.at) > STALE_MS) continue
      if (before?.report.sequence !== report.sequence) this.#seen.set(one.node, { report, changedAt: now })
    }
    for (const [id, { changedAt, report }] of this.#seen) {
      // It was removed: the node has stopped.
      const isGone = !there.has(id) && !this.#isLost(changedAt)
      if (isGone || changedAt + LISTED_MS <= now) {
        this.#seen.delete(id)
        this.#counted.delete(report.id)
      }
    }
  }

  #live(): readonly NodeReport[] {
    return [...this.#seen.values()].filter(({ changedAt }) => !this.#isLost(changedAt)).map(({ report }) => report)
  }

  #isLost(changedAt: number): boolean {
    const { exchange, nowMs } = this.#parts
    return exchange !== undefined && changedAt + exchange.lostAfterMs <= nowMs()
  }

  /** Adds what each node has counted since it was last added up. The first report of another node is a baseline. */
  #addUp(reports: readonly NodeReport[]): void {
    for (const { id, totals } of reports) {
      const before = this.#counted.get(id)
      this.#counted.set(id, totals)
      if (before !== undefined) this.#sum = addTraffic(this.#sum, trafficSince(totals, before))
      else if (id === this.#parts.node) this.#sum = addTraffic(this.#sum, totals)
    }
  }
}

function statusOf(report: NodeReport, seen: Pick<NodeStatus, 'lastSeenAt' | 'isLost'>): NodeStatus {
  const {
    sequence: _sequence,
    at: _at,
    candidate: _candidate,
    totals: _totals,
    top: _top,
    alerts: _alerts,
    ...status
  } = report
  return { ...status, ...seen, isSelf: false }
}

/** Each alert once: nodes that share one all report it. */
function alertsOf(reports: readonly NodeReport[]): readonly Alert[] {
  return [...new Map(reports.flatMap(({ alerts }) => alerts.map((alert) => [alert.id, alert]))).values()]
}
