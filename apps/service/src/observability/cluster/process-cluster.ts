import type { ConfigStats } from '@sluice/config-store'
import type { Alert, DecisionRecord } from '@sluice/contract'
import type { Logger, MetricsSnapshot, NowMs, Sleep } from '@sluice/runtime'
import type { Settings } from '../../settings/settings.ts'
import type { MainThread } from '../../thread-messages/message-bus.ts'
import type { DecisionMessages, DecisionQuery } from '../decision-sample.ts'
import { matches } from '../decision-sample.ts'
import type { TrafficTotals } from '../history/traffic-totals.ts'
import { latencyOf, trafficOf, trafficSince } from '../history/traffic-totals.ts'
import { METRIC } from '../metrics/metric-names.ts'
import type { ReportMessages } from '../metrics-aggregator.ts'
import { askReport } from '../metrics-aggregator.ts'
import { publishedCallers } from '../top-callers.ts'
import type { ClusterMessages } from './cluster-view.ts'
import { ClusterView } from './cluster-view.ts'
import type { NodeReport } from './node-report.ts'
import { BoundedTotals } from './node-report.ts'
import type { ReportExchange } from './report-exchange.ts'

/** Which decisions are wanted. */
export interface ClusterDecisionQuery extends DecisionQuery {
  /** Only of this node, by id or name; `self` for this one. */
  readonly node?: string | undefined
}

/** Messages about the decisions of all nodes, to the main thread. */
export interface ClusterDecisionMessages {
  /** Newest first. */
  'cluster.decisions': (query: ClusterDecisionQuery) => readonly DecisionRecord[]
}

/** Messages of others that a report is made of. */
interface WatchedMessages {
  'config.stats': () => ConfigStats
  'alerts.list': (only?: 'own') => readonly Alert[]
}

/** Options of {@link ProcessCluster}. */
export interface ProcessClusterParts {
  readonly settings: Pick<Settings, 'redis' | 'region' | 'threads'>
  /** Id of this node, and its name for people. */
  readonly node: string
  readonly nodeName: string
  /** Version of the service. */
  readonly version: string
  /** Undefined for a node that shares with none. */
  readonly exchange: ReportExchange | undefined
  readonly threads: MainThread<
    ReportMessages & DecisionMessages & ClusterMessages & ClusterDecisionMessages & WatchedMessages
  >
  /** Key of digests; read at each use. */
  readonly secret: Uint8Array
  readonly nowMs: NowMs
  readonly sleep: Sleep
  readonly log: Logger
}

/** Callers per dimension that a report names. */
const MOST_CALLERS = 100

const MOST_ALERTS = 20

/** Decisions that a node publishes, and their bytes. */
const MOST_DECISIONS = 256
const MOST_DECISION_BYTES = 131_072

/** Rates are those of the last interval that is at least so long. */
const RATE_MS = 900

const BREAKERS = ['closed', 'half-open', 'open'] as const

/** What this process says of itself to other nodes, and what it knows of them. In the main thread. */
export class ProcessCluster {
  readonly #parts: ProcessClusterParts
  readonly #view: ClusterView
  readonly #bounded = new BoundedTotals()
  readonly #startedAt: number
  #before: { readonly atMs: number; readonly totals: TrafficTotals } | undefined
  #rates: Pick<NodeReport, 'checksPerSecond' | 'denialsPerSecond' | 'storeP99Ms'> = {
    checksPerSecond: 0,
    denialsPerSecond: 0,
    storeP99Ms: null,
  }
  #publishedDecisions = ''

  constructor(parts: ProcessClusterParts) {
    this.#parts = parts
    const { threads, node, exchange, nowMs, sleep, log } = parts
    this.#startedAt = Math.floor(nowMs())
    this.#view = new ClusterView({
      ...{ node, exchange, nowMs, sleep, log },
      report: (sequence) => this.#report(sequence),
      publishDecisions: (through) => this.#publishDecisions(through),
    })
    threads.handleInMain('cluster.figures', (wanted) => this.#view.figures(wanted))
    threads.handleInMain('cluster.nodes', () => this.#view.nodes())
    threads.handleInMain('cluster.decisions', (query) => this.#decisions(query))
  }

  start(): void {
    this.#view.start()
  }

  stop(): Promise<void> {
    return this.#view.stop()
  }

  async #report(sequence: number): Promise<NodeReport> {
    const { settings, threads, node, nodeName, version, secret, nowMs } = this.#parts
    const [{ metrics, top }, { replies }, alerts] = await Promise.all([
      askReport(threads),
      threads.gather('config.stats'),
      threads.callMain('alerts.list', 'own'),
    ])
    const at = nowMs()
    const totals = this.#bounded.of(trafficOf(metrics))
    this.#measure(at, totals)
    const firing = alerts.filter(({ state }) => state === 'firing')
    const { region, redis } = settings
    return {
      id: node,
      name: nodeName,
      ...(region === undefined ? {} : { region }),
      version,
      startedAt: this.#startedAt,
      uptimeMs: Math.max(0, Math.floor(at) - this.#startedAt),
      threads: settings.threads,
      servingThreads: replies.length,
      configVersion: lowest(replies.map(({ enforcedVersion = 0 }) => enforcedVersion)),
      configLagMs: Math.round(Math.max(0, ...replies.map(({ lagMs }) => lagMs))),
      candidate: replies.find(({ candidateVersion }) => candidateVersion !== undefined)?.candidateVersion,
      store: redis === undefined ? 'memory' : 'redis',
      ...(redis === undefined ? {} : { failureMode: redis.failureMode }),
      breaker: BREAKERS[gaugeOf(metrics, METRIC.breaker)] ?? 'closed',
      inFlight: gaugeOf(metrics, METRIC.inFlight),
      firingAlerts: firing.length,
      ...this.#rates,
      sequence,
      at: Math.floor(at),
      totals,
      top: publishedCallers(top, { limit: MOST_CALLERS, secret }),
      alerts: firing.slice(0, MOST_ALERTS),
    }
  }

  #measure(atMs: number, totals: TrafficTotals): void {
    const before = this.#before
    if (before !== undefined && atMs - before.atMs < RATE_MS) return
    this.#before = { atMs, totals }
    if (before === undefined) return
    const { checks, storeLatency } = trafficSince(totals, before.totals)
    const perSecond = (result?: string): number => {
      const rows = checks.filter((row) => result === undefined || row.result === result)
      const count = rows.reduce((sum, row) => sum + row.count, 0)
      return Number(((count * 1000) / (atMs - before.atMs)).toFixed(1))
    }
    this.#rates = {
      checksPerSecond: perSecond(),
      denialsPerSecond: perSecond('denied'),
      storeP99Ms: latencyOf(storeLatency, 0.99),
    }
  }

  /** Of this node and, unless another is wanted, of those that have published theirs. */
  async #decisions({ node: wanted, ...query }: ClusterDecisionQuery): Promise<readonly DecisionRecord[]> {
    const { node, nodeName, exchange, secret } = this.#parts
    const isOwn = wanted === undefined || wanted === 'self' || wanted === node || wanted === nodeName
    const own = isOwn ? await this.#ownDecisions(query) : []
    if (exchange === undefined || wanted === 'self' || wanted === node) return own
    const { nodes } = await this.#view.nodes()
    const asked = nodes.filter(({ id, name, isLost, isSelf }) => {
      return !isLost && !isSelf && (wanted === undefined || id === wanted || name === wanted)
    })
    const ids = new Set(asked.map(({ id }) => id))
    const published = ids.size === 0 ? [] : await exchange.readAll('decisions').catch(() => [])
    const others = published
      .filter((one) => ids.has(one.node))
      .flatMap(({ body }) => JSON.parse(body) as readonly DecisionRecord[])
      .filter((record) => matches(record, query, secret))
    return newestFirst([...own, ...others]).slice(0, query.most)
  }

  async #ownDecisions(query: DecisionQuery): Promise<readonly DecisionRecord[]> {
    const { threads, node } = this.#parts
    const { replies } = await threads.gather('decisions.thread', query)
    return newestFirst(replies.flat().map((record) => ({ ...record, node }))).slice(0, query.most)
  }

  async #publishDecisions(exchange: ReportExchange): Promise<void> {
    const records = await this.#ownDecisions({ most: MOST_DECISIONS })
    let body = JSON.stringify(records)
    // Half of them, until they fit: identities may be long.
    for (let count = records.length; body.length > MOST_DECISION_BYTES; ) {
      count = Math.floor(count / 2)
      body = JSON.stringify(records.slice(0, count))
    }
    if (body === this.#publishedDecisions && body === '[]') return
    await exchange.publish('decisions', this.#parts.node, body)
    this.#publishedDecisions = body
  }
}

function newestFirst(records: readonly DecisionRecord[]): readonly DecisionRecord[] {
  return records.toSorted((one, other) => other.at - one.at || (one.id < other.id ? 1 : -1))
}

function lowest(numbers: readonly number[]): number {
  return numbers.length === 0 ? 0 : Math.min(...numbers)
}

function gaugeOf({ families }: MetricsSnapshot, name: string): number {
  const family = families.find((one) => one.name === name)
  return family?.type === 'gauge' ? (family.samples[0]?.value ?? 0) : 0
}
