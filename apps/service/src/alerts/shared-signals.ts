import type { Logger, NowMs } from '@sluice/runtime'
import type { ReportExchange } from '../observability/cluster/report-exchange.ts'
import { errorFields } from '../observability/error-fields.ts'
import type { SignalSnapshot } from './alert-signals.ts'
import { mergeSignals } from './alert-signals.ts'

/** The signals of all nodes added up. */
export interface TotalSignals {
  readonly signals: SignalSnapshot
  /** Nodes that were counted, this one included. */
  readonly nodes: number
  /** Whether those of other nodes cannot be read: then only this node counts. */
  readonly isPartial: boolean
}

/** Options of {@link SharedSignals}. */
export interface SharedSignalsParts {
  readonly exchange: ReportExchange
  /** Id of this node, kept across restarts. */
  readonly nodeId: string
  readonly nowMs: NowMs
  readonly log: Pick<Logger, 'warn'>
}

/** What a node publishes: plain data. */
interface PublishedSignals {
  /** Rises with every publication. */
  readonly sequence: number
  /** By the clock of the node; milliseconds since 1970. */
  readonly at: number
  readonly signals: SignalSnapshot
}

interface SeenSignals extends PublishedSignals {
  /** When the sequence number was seen first, by the clock of this node; undefined: before anybody looked. */
  readonly changedAt: number | undefined
}

/** Signals that have not changed for so long are of a node that is gone. */
const LOST_AFTER_MS = 15_000

/** Signals that are seen for the first time and are older than this count when they change. */
const STALE_MS = 60_000

/**
 * Publishes the signals of this node and adds up those of all. Has no timer: call {@link SharedSignals.exchange} about
 * once a second. See docs/decisions/2026-11-18-alerts-over-all-nodes.md.
 */
export class SharedSignals {
  readonly #parts: SharedSignalsParts
  readonly #seen = new Map<string, SeenSignals>()
  #sequence = 0
  #exchangedAt = Number.NEGATIVE_INFINITY
  #exchanging: Promise<void> | undefined
  #readAt: number | undefined
  #isFailing = false

  constructor(parts: SharedSignalsParts) {
    this.#parts = parts
  }

  /** Publishes and reads, if that is due and none is under way. */
  exchange(own: SignalSnapshot): void {
    const nowMs = this.#parts.nowMs()
    if (this.#exchanging !== undefined) return
    if (Math.abs(nowMs - this.#exchangedAt) < this.#parts.exchange.everyMs.signals) return
    this.#exchangedAt = nowMs
    this.#exchanging = this.#exchange(own).finally(() => {
      this.#exchanging = undefined
    })
  }

  /** `own` and what others have published. Undefined before the first attempt to read has ended. */
  total(own: SignalSnapshot): TotalSignals | undefined {
    if (this.#readAt === undefined && !this.#isFailing) return undefined
    const others = [...this.#seen.values()].filter((seen) => this.#isLive(seen))
    return {
      signals: mergeSignals([own, ...others.map(({ signals }) => comparable(signals, own))]),
      nodes: 1 + others.length,
      isPartial: this.#isFailing && others.length === 0,
    }
  }

  /** Resolves when what is under way has ended. */
  async settled(): Promise<void> {
    await this.#exchanging
  }

  /** Removes the signals of this node, so that others stop counting them at once. */
  async close(): Promise<void> {
    await this.#exchanging
    try {
      await this.#parts.exchange.remove(this.#parts.nodeId, ['signals'])
    } catch {
      // They end by themselves.
    }
  }

  /** Never rejects. */
  async #exchange(own: SignalSnapshot): Promise<void> {
    const { exchange, nodeId, nowMs, log } = this.#parts
    try {
      const published: PublishedSignals = { sequence: ++this.#sequence, at: Math.floor(nowMs()), signals: own }
      await exchange.publish('signals', nodeId, JSON.stringify(published))
      const found = await exchange.readAll('signals')
      this.#note(new Map(found.map(({ node, body }) => [node, JSON.parse(body) as PublishedSignals])))
      this.#readAt = nowMs()
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing) log.warn('cannot share alert signals with other nodes', { error: errorFields(error) })
      this.#isFailing = true
    }
  }

  #note(published: ReadonlyMap<string, PublishedSignals>): void {
    const nowMs = this.#parts.nowMs()
    for (const node of this.#seen.keys()) if (!published.has(node)) this.#seen.delete(node)
    for (const [node, now] of published) {
      if (node === this.#parts.nodeId) continue
      const before = this.#seen.get(node)
      if (before?.sequence === now.sequence) continue
      const isStale = before === undefined && Math.abs(nowMs - now.at) > STALE_MS
      this.#seen.set(node, { ...now, changedAt: isStale ? undefined : nowMs })
    }
  }

  #isLive({ changedAt }: SeenSignals): boolean {
    return changedAt !== undefined && Math.abs(this.#parts.nowMs() - changedAt) < LOST_AFTER_MS
  }
}

/** Without the latency of a node that has other buckets, because its alert settings are different. */
function comparable(signals: SignalSnapshot, own: SignalSnapshot): SignalSnapshot {
  return signals.storeLatency.length === own.storeLatency.length ? signals : { ...signals, storeLatency: [] }
}
