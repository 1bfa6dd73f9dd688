import type { LiveSample, OverviewUpdate, TrafficShare } from '@sluice/contract'
import type { ClusterFigures } from '../../observability/cluster/cluster-view.ts'
import type { TrafficTotals } from '../../observability/history/traffic-totals.ts'
import {
  largestShares,
  latencyOf,
  sharesOf,
  trafficPoint,
  trafficSince,
} from '../../observability/history/traffic-totals.ts'
import { shownCallers } from '../../observability/top-callers.ts'
import type { EventFeedParts } from './event-feed.ts'
import { EventFeed } from './event-feed.ts'

/** Figures at an instant. */
export interface TimedFigures {
  readonly atMs: number
  readonly figures: ClusterFigures
}

/** What feeds of figures work with. */
export interface FigureFeedParts extends Omit<EventFeedParts<TimedFigures>, 'event' | 'dataOf' | 'take' | 'everyMs'> {
  readonly figures: () => Promise<ClusterFigures>
}

const LIVE_EVERY_MS = 1000

const SHOWN_CALLERS = 10

/** A sample of everything per second: `/admin/live`. */
export function liveFeed(parts: FigureFeedParts): EventFeed<TimedFigures> {
  return new EventFeed({ ...parts, event: 'sample', everyMs: LIVE_EVERY_MS, take: timed(parts), dataOf: sampleOf })
}

function timed({ figures, nowMs }: FigureFeedParts): () => Promise<TimedFigures> {
  return async () => {
    const taken = await figures()
    return { atMs: nowMs(), figures: taken }
  }
}

function spanOf(before: TimedFigures, now: TimedFigures): { readonly at: number; readonly spanMs: number } {
  return { at: Math.floor(before.atMs), spanMs: Math.max(1, Math.round(now.atMs - before.atMs)) }
}

function sampleOf(before: TimedFigures, now: TimedFigures): LiveSample {
  const { totals, top, nodes, version, configLagMs, inFlight, firingAlerts, breaker } = now.figures
  return {
    ...trafficPoint(trafficSince(totals, before.figures.totals), spanOf(before, now)),
    nodes,
    version,
    configAgeMs: configLagMs,
    inFlight,
    firingAlerts,
    breaker,
    top: shownCallers(top, { limit: SHOWN_CALLERS }),
  }
}

/** How updates of the overview are made. */
export interface UpdateOptions {
  readonly everyMs: number
  /** Maximum number of resources besides `other`. */
  readonly resources: number
}

const SHOWN_REGIONS = 12

/** Lists of shares and callers are sent at most so often. */
const LISTS_EVERY_MS = 1000

/** Only what changed since the last update: `/admin/overview/live`. */
export function overviewFeed(parts: FigureFeedParts, options: UpdateOptions): EventFeed<TimedFigures> {
  const updates = new OverviewUpdates(options)
  return new EventFeed({
    ...parts,
    event: 'update',
    everyMs: options.everyMs,
    take: timed(parts),
    dataOf: (before, now) => updates.next(before, now),
  })
}

/** Remembers what was sent, so that it is sent again only when it changes. */
class OverviewUpdates {
  readonly #options: UpdateOptions
  readonly #sent = new Map<string, string>()
  #listsAt = Number.NEGATIVE_INFINITY
  #listsFrom: TrafficTotals | undefined

  constructor(options: UpdateOptions) {
    this.#options = options
  }

  next(before: TimedFigures, now: TimedFigures): OverviewUpdate {
    const { figures } = now
    const came = trafficSince(figures.totals, before.figures.totals)
    const { checks, denials } = sumOf(sharesOf(came.checks, () => ''))
    const shadow = sumOf(sharesOf(came.shadows, () => ''))
    const p50 = latencyOf(came.storeLatency, 0.5)
    const p99 = latencyOf(came.storeLatency, 0.99)
    const { nodes, version, configLagMs, inFlight, firingAlerts, breaker } = figures
    return {
      ...spanOf(before, now),
      checks,
      denials,
      ...aboveZero('withoutStore', came.withoutStore),
      ...aboveZero('storeErrors', came.storeErrors),
      ...aboveZero('shadowChecks', shadow.checks),
      ...aboveZero('shadowDenials', shadow.denials),
      ...(p50 === null ? {} : { storeP50Ms: p50 }),
      ...(p99 === null ? {} : { storeP99Ms: p99 }),
      ...this.#changed({ nodes, version, configLagMs, inFlight, firingAlerts, breaker }),
      ...this.#lists(before, now),
    }
  }

  /** Shares of the time since the last lists, and the top callers. */
  #lists(before: TimedFigures, now: TimedFigures): Partial<OverviewUpdate> {
    if (now.atMs - this.#listsAt < LISTS_EVERY_MS) return {}
    const came = trafficSince(now.figures.totals, this.#listsFrom ?? before.figures.totals)
    this.#listsAt = now.atMs
    this.#listsFrom = now.figures.totals
    const most = this.#options.resources
    return this.#changed({
      resources: largestShares(
        sharesOf(came.checks, ({ resource }) => resource),
        { most, by: 'denials' },
      ),
      regions: largestShares(
        sharesOf(came.regions, ({ region }) => region),
        { most: SHOWN_REGIONS, by: 'checks' },
      ),
      top: shownCallers(now.figures.top, { limit: SHOWN_CALLERS }),
    })
  }

  #changed<T extends object>(values: T): Partial<T> {
    const changed = Object.entries(values).filter(([name, value]) => {
      const text = JSON.stringify(value)
      const isSame = this.#sent.get(name) === text
      this.#sent.set(name, text)
      return !isSame
    })
    return Object.fromEntries(changed) as Partial<T>
  }
}

function sumOf(shares: readonly TrafficShare[]): Pick<TrafficShare, 'checks' | 'denials'> {
  return shares[0] ?? { checks: 0, denials: 0 }
}

function aboveZero<Name extends string>(name: Name, value: number): { readonly [Each in Name]?: number } {
  return (value > 0 ? { [name]: value } : {}) as { readonly [Each in Name]?: number }
}
