import type { Alert, LiveSample, NodeStatus } from '@sluice/contract'
import type { TrafficTotals } from '../history/traffic-totals.ts'
import { addTraffic, NO_TRAFFIC } from '../history/traffic-totals.ts'
import { OTHER } from '../metrics/metric-names.ts'
import type { TopCallersSnapshot } from '../top-callers.ts'

/** What a node says of itself: plain data, published as JSON. */
export interface NodeReport extends Omit<NodeStatus, 'isSelf' | 'isLost' | 'lastSeenAt'> {
  /** Rises with every report. */
  readonly sequence: number
  /** When it was made, by the clock of the node; milliseconds since 1970. */
  readonly at: number
  /** Number of the version in stage shadow or percent. */
  readonly candidate: number | undefined
  /** Since the start of the process. */
  readonly totals: TrafficTotals
  /** With digests in place of API keys. */
  readonly top: TopCallersSnapshot
  /** Alerts that hold and are of this node, or of all. */
  readonly alerts: readonly Alert[]
}

/** Rows of resources, and of regions, that a report names. */
const MOST_ROWS = { checks: 1000, regions: 64, shadows: 200 } as const

/**
 * Bounds the totals of a process. Rows are named first come, first served, and stay named: a row that moved to `other`
 * and back would make totals go down and up again.
 */
export class BoundedTotals {
  readonly #named = { checks: new Set<string>(), regions: new Set<string>(), shadows: new Set<string>() }

  of(totals: TrafficTotals): TrafficTotals {
    const checks = totals.checks.map((row) => {
      const resource = this.#isNamed('checks', row.resource) ? row.resource : OTHER
      // Dimensions are not told apart in any figure of several nodes.
      return { ...row, resource, dimension: '' }
    })
    const regions = totals.regions.map((row) => ({
      ...row,
      region: this.#isNamed('regions', row.region) ? row.region : OTHER,
    }))
    const shadows = totals.shadows.map((row) => {
      const isNamed = this.#isNamed('shadows', `${row.version} ${row.dimension} ${row.resource}`)
      return isNamed ? row : { ...row, resource: OTHER, dimension: OTHER }
    })
    return addTraffic(NO_TRAFFIC, { ...totals, checks, regions, shadows })
  }

  #isNamed(part: keyof typeof MOST_ROWS, name: string): boolean {
    const named = this.#named[part]
    if (named.has(name)) return true
    // Each has a row for each result.
    if (named.size >= MOST_ROWS[part] / 2) return false
    named.add(name)
    return true
  }
}

/** What holds now for several nodes together. */
export interface ClusterNow
  extends Pick<LiveSample, 'version' | 'inFlight' | 'firingAlerts' | 'breaker'>,
    Pick<NodeReport, 'candidate'> {
  readonly failureMode: string | undefined
  readonly nodes: number
  readonly configLagMs: number
}

const BREAKERS = ['closed', 'half-open', 'open'] as const

/** The gauges of several nodes as one: sums, or the worst of them. */
export function nowOf(reports: readonly NodeReport[]): ClusterNow {
  const sum = (of: (report: NodeReport) => number): number => reports.reduce((total, report) => total + of(report), 0)
  const worst = Math.max(0, ...reports.map(({ breaker }) => BREAKERS.indexOf(breaker)))
  const firing = new Set(reports.flatMap(({ alerts }) => alerts.map(({ id }) => id)))
  return {
    nodes: reports.length,
    version: reports.length === 0 ? 0 : Math.min(...reports.map(({ configVersion }) => configVersion)),
    configLagMs: Math.max(0, ...reports.map(({ configLagMs }) => configLagMs)),
    inFlight: sum(({ inFlight }) => inFlight),
    firingAlerts: firing.size,
    breaker: BREAKERS[worst]!,
    candidate: reports.find(({ candidate }) => candidate !== undefined)?.candidate,
    failureMode: reports.find(({ failureMode }) => failureMode !== undefined)?.failureMode,
  }
}
