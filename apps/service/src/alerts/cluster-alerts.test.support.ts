import type { StoredDocument } from '@sluice/config-store'
import { FakeClock } from '@sluice/testing'
import type { SharedDocument } from '../config/shared-document.ts'
import type { ReportExchange } from '../observability/cluster/report-exchange.ts'
import type { AlertOptions } from '../settings/alert-settings.ts'
import type { AlertNotice } from './alert-record.ts'
import type { AlertCondition } from './alert-rule.ts'
import { alertRules, conditionsThrough } from './alert-rule.ts'
import type { SignalSnapshot } from './alert-signals.ts'
import { TestLog } from './alerts.test.support.ts'
import { ClusterAlerts } from './cluster-alerts.ts'
import type { ClusterState } from './cluster-state.ts'
import { SharedSignals } from './shared-signals.ts'
import type { StatePart } from './state-file.ts'

const QUIET: SignalSnapshot = {
  checks: { hits: 0, total: 0 },
  storeCalls: { hits: 0, total: 100 },
  storeLatency: [],
  configLagMs: 0,
}

const FAILING: SignalSnapshot = { ...QUIET, storeCalls: { hits: 50, total: 100 } }

/** Half of all calls of the store fail at once; over as soon as none has failed for 5 seconds. */
const OPTIONS: AlertOptions = {
  'store-errors': { resolveAfterSeconds: 5 },
  'store-latency': { enabled: false },
  'denial-rate': { enabled: false },
  'config-lag': { enabled: false },
}

/** What receivers got: which notice, from which node, in which second. */
export interface Delivery {
  readonly id: string
  readonly node: string
  readonly second: number
}

/** One node: what the test decides about it, and what survives its end. */
class TestNode {
  readonly name: string
  /** Whether calls of its store fail. */
  fails = false
  /** What it has counted instead. */
  storeCalls: SignalSnapshot['storeCalls'] | undefined
  /** Whether it reaches the shared document. */
  isConnected = true
  readonly log: TestLog = new TestLog()
  alerts: ClusterAlerts | undefined
  /** Undefined where each node evaluates its own calls. */
  shared: SharedSignals | undefined
  channel: TestChannel
  kept: string | undefined

  constructor(name: string, channel: TestChannel) {
    this.name = name
    this.channel = channel
  }

  get signals(): SignalSnapshot {
    if (this.storeCalls !== undefined) return { ...QUIET, storeCalls: this.storeCalls }
    return this.fails ? FAILING : QUIET
  }
}

/** Delivers what it has at the end of a second, while the receiver is up. What it has survives the end of its node. */
class TestChannel {
  readonly pending: Map<string, AlertNotice> = new Map()
  takes = true

  send(notice: AlertNotice): Promise<boolean> {
    if (this.takes) this.pending.set(notice.id, notice)
    return Promise.resolve(this.takes)
  }

  isPending(noticeId: string): boolean {
    return this.pending.has(noticeId)
  }
}

/** What a test decides about its cluster. */
export interface TestClusterOptions {
  readonly remindEverySeconds?: number
  /** Whether conditions are evaluated over all nodes, as with Redis. Default: over the calls of each. */
  readonly isOverAllNodes?: boolean
}

/** Several nodes, the document they share, and a receiver. A second passes when the test says so. */
export class TestCluster {
  readonly nodes: readonly TestNode[]
  readonly deliveries: Delivery[] = []
  /** Whether the receiver answers. */
  isReceiverUp = true
  /** Writes to the document. */
  writes = 0
  readonly #clock = new FakeClock()
  readonly #remindEveryMs: number
  readonly #isOverAllNodes: boolean
  readonly #published = new Map<string, string>()
  #document: StoredDocument | undefined
  #second = 0
  #ids = 0

  constructor(count: number, { remindEverySeconds = 0, isOverAllNodes = false }: TestClusterOptions = {}) {
    this.#remindEveryMs = remindEverySeconds * 1000
    this.#isOverAllNodes = isOverAllNodes
    this.nodes = Array.from({ length: count }, (_, index) => new TestNode(`node-${index + 1}`, new TestChannel()))
    for (const node of this.nodes) this.start(node)
  }

  /** Ids of all notices that receivers got, in their order. */
  get told(): readonly string[] {
    return this.deliveries.map(({ id }) => id)
  }

  get state(): ClusterState {
    return JSON.parse(this.#document!.body)
  }

  node(number: number): TestNode {
    return this.nodes[number - 1]!
  }

  /** What a node lists, as rule and state. */
  listed(node: TestNode): readonly string[] {
    return node.alerts!.list().map(({ id, state }) => `${id} ${state}`)
  }

  start(node: TestNode): void {
    const copy: StatePart<ClusterState> = {
      load: () => (node.kept === undefined ? undefined : JSON.parse(node.kept)),
      save: (state) => {
        node.kept = JSON.stringify(state)
        return Promise.resolve()
      },
    }
    const nowMs = (): number => this.#clock.nowMicros() / 1000
    if (this.#isOverAllNodes) {
      const exchange = this.#exchangeOf(node)
      node.shared = new SharedSignals({ exchange, nodeId: node.name, nowMs, log: node.log })
    }
    node.alerts = new ClusterAlerts({
      document: this.#documentOf(node),
      conditions: this.#conditionsOf(node),
      remindEveryMs: this.#remindEveryMs,
      nodeId: node.name,
      nodeName: node.name,
      nowMs,
      newId: () => `id${++this.#ids}`,
      channel: node.channel,
      log: node.log,
      copy,
    })
  }

  /**
   * Ends a node at once: nothing of what it was about to do is done. With its folder lost, it is another node
   * afterwards.
   */
  crash(node: TestNode, { losesFolder = false }: { readonly losesFolder?: boolean } = {}): void {
    node.alerts = undefined
    if (!losesFolder) return
    node.kept = undefined
    node.channel = new TestChannel()
  }

  /** Lets all nodes look, once a second; the receiver gets what is pending. */
  async seconds(count = 1): Promise<void> {
    for (let second = 0; second < count; second++) {
      await this.look()
      this.deliver()
      this.#clock.advance(1000)
      this.#second++
    }
  }

  /** All nodes look at the same time. */
  async look(): Promise<void> {
    const running = this.nodes.filter(({ alerts }) => alerts !== undefined)
    for (const { shared, signals } of running) shared?.exchange(signals)
    await Promise.all(running.map(({ shared }) => shared?.settled()))
    for (const { alerts, shared, signals } of running) alerts!.evaluate(signals, shared?.total(signals))
    await Promise.all(running.map(({ alerts }) => alerts!.settled()))
  }

  /** The receiver gets what running nodes have for it. */
  deliver(): void {
    if (!this.isReceiverUp) return
    for (const { name, alerts, channel } of this.nodes) {
      if (alerts === undefined) continue
      for (const id of channel.pending.keys()) this.deliveries.push({ id, node: name, second: this.#second })
      channel.pending.clear()
    }
  }

  /** Loses the document, as a Redis without persistence does. */
  loseDocument(): void {
    this.#document = undefined
  }

  #conditionsOf({ name }: TestNode): readonly AlertCondition[] {
    const rules = alertRules(OPTIONS)
    if (!this.#isOverAllNodes) {
      return rules.map((rule) => ({ key: rule.name, rule, scope: 'cluster', isOverAllNodes: false }))
    }
    return conditionsThrough('redis', rules, { databaseUrl: undefined, redis: { prefix: 'p' }, nodeId: name })
  }

  #exchangeOf(node: TestNode): ReportExchange {
    const reached = async (): Promise<Map<string, string>> => {
      await Promise.resolve()
      if (!node.isConnected) throw new Error('the signals cannot be reached')
      return this.#published
    }
    return {
      everyMs: { report: 1000, decisions: 5000, signals: 5000 },
      lostAfterMs: 5000,
      publish: async (_, name, body) => void (await reached()).set(name, body),
      readAll: async () => Array.from(await reached(), ([name, body]) => ({ node: name, body })),
      remove: async (name) => void (await reached()).delete(name),
    }
  }

  #documentOf(node: TestNode): SharedDocument {
    const reach = (): void => {
      if (!node.isConnected) throw new Error('the document cannot be reached')
    }
    return {
      // Others come in between, as on a network.
      read: async () => {
        await Promise.resolve()
        reach()
        return this.#document
      },
      write: async (body, revision) => {
        await Promise.resolve()
        reach()
        if ((this.#document?.revision ?? 0) !== revision) return false
        this.#document = { revision: revision + 1, body }
        this.writes++
        return true
      },
    }
  }
}
