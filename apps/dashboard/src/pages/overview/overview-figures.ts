import type { ReadonlySignal } from '@preact/signals'
import { batch, signal } from '@preact/signals'
import type { OverviewAnswer, OverviewUpdate, TopDimension, TrafficSeries, TrafficShare } from '@sluice/contract'
import { SeriesWindow } from '../../charts/series-window.ts'

/** Resources and regions with a line of their own; the rest is `other`. */
export const MOST_RESOURCES = 7
export const MOST_REGIONS = 5
const MOST_POINTS = 1200
/** Live totals of a short range are drawn for each second; what the service keeps has longer steps. */
const SHORTEST_STEP_MS = 1000
const SHORT_RANGE_MS = 1_000_000
/** Less of a step says too little about resources with few requests. */
const LEAST_STEP_MS = 2000
/** Figures of the strip are means over this time, so that they can be read. */
const MEAN_MS = 5000

/** What the strip at the top shows. Rates are per second. */
export interface CurrentFigures {
  readonly checks: number
  readonly denials: number
  readonly shadowDenials: number
  readonly withoutStore: number
  readonly storeP50Ms: number | undefined
  readonly storeP99Ms: number | undefined
  readonly nodes: number
  readonly version: number
  readonly candidate: number | undefined
  readonly configLagMs: number
  readonly inFlight: number
  readonly firingAlerts: number
  readonly breaker: OverviewAnswer['breaker']
  readonly failureMode: string | undefined
  readonly alertBounds: OverviewAnswer['alertBounds']
}

/** Series by name: per second, and the share that was denied. */
export interface NamedSeries {
  readonly names: readonly string[]
  readonly checks: SeriesWindow
  readonly denials: SeriesWindow
  readonly shares: SeriesWindow
}

/** The sums of the step that is going on. */
interface Step {
  readonly atMs: number
  spanMs: number
  readonly totals: Float64Array<ArrayBuffer>
  p50: number
  p99: number
}

/** The sums of the step of resources and regions that is going on: checks of all names, then denials. */
interface NamedStep {
  readonly atMs: number
  spanMs: number
  readonly resources: Float64Array<ArrayBuffer>
  readonly regions: Float64Array<ArrayBuffer>
}

const TOTALS = ['checks', 'denials', 'shadowDenials', 'withoutStore', 'storeErrors'] as const

/**
 * The figures of the overview: a range that was loaded, and the live updates that continue it. Updates change buffers
 * that are allocated once; charts draw them when they are next drawn.
 */
export class OverviewFigures {
  /** Checks, denials and what the candidate would deny, per second. */
  readonly traffic: SeriesWindow = new SeriesWindow(MOST_POINTS, 3)
  /** Median and 99th percentile of calls to the store, in milliseconds. */
  readonly latency: SeriesWindow = new SeriesWindow(MOST_POINTS, 2)
  readonly resources: ReadonlySignal<NamedSeries>
  readonly regions: ReadonlySignal<NamedSeries>
  readonly current: ReadonlySignal<CurrentFigures | undefined>
  readonly top: ReadonlySignal<readonly TopDimension[]>
  /** Time that `top` covers, in milliseconds; 0 before it is known. */
  readonly topSpanMs: ReadonlySignal<number>
  /** Rises with every change. */
  readonly revision: ReadonlySignal<number>
  readonly #resources = signal(namedSeries([]))
  readonly #regions = signal(namedSeries([]))
  readonly #current = signal<CurrentFigures | undefined>(undefined)
  readonly #top = signal<readonly TopDimension[]>([])
  readonly #topSpanMs = signal(0)
  readonly #revision = signal(0)
  readonly #recent: { readonly untilMs: number; readonly spanMs: number; readonly totals: readonly number[] }[] = []
  #lastResources: readonly TrafficShare[] = []
  #lastRegions: readonly TrafficShare[] = []
  #step: Step | undefined
  #namedStep: NamedStep | undefined
  #stepMs = SHORTEST_STEP_MS
  #namedStepMs = SHORTEST_STEP_MS

  constructor() {
    this.resources = this.#resources
    this.regions = this.#regions
    this.current = this.#current
    this.top = this.#top
    this.topSpanMs = this.#topSpanMs
    this.revision = this.#revision
  }

  /** The step of live totals, in milliseconds. */
  get stepMs(): number {
    return this.#stepMs
  }

  /** Puts a range in the place of everything. `isLive`: updates will continue it. */
  load(answer: OverviewAnswer, isLive: boolean): void {
    batch(() => {
      const { at, stepMs, checks, denials, shadowDenials, storeP50Ms, storeP99Ms, candidate } = answer
      this.#stepMs = answer.to - answer.from <= SHORT_RANGE_MS ? SHORTEST_STEP_MS : stepMs
      this.#step = undefined
      this.traffic.clear()
      this.latency.clear()
      const perSecond = 1000 / stepMs
      for (let index = firstStep(answer); index < endStep(answer, isLive); index += 1) {
        const atMs = at[index]!
        const shadow = candidate === undefined ? Number.NaN : shadowDenials[index]! * perSecond
        this.traffic.set(atMs, [checks[index]! * perSecond, denials[index]! * perSecond, shadow])
        this.latency.set(atMs, [storeP50Ms[index] ?? Number.NaN, storeP99Ms[index] ?? Number.NaN])
      }
      this.#current.value = { ...meansOf(answer), ...stateOf(answer) }
      this.reload(answer, isLive)
    })
  }

  /**
   * Takes what updates do not tell from a newer answer: which resources and regions have lines of their own, and the
   * versions. The totals stay: they have shorter steps than the answer.
   */
  reload(answer: OverviewAnswer, isLive: boolean): void {
    batch(() => {
      this.#namedStepMs = answer.stepMs
      this.#namedStep = undefined
      this.#resources.value = loadedSeries(answer.resources, MOST_RESOURCES, { answer, isLive })
      this.#regions.value = loadedSeries(answer.regions, MOST_REGIONS, { answer, isLive })
      this.#top.value = answer.top
      this.#topSpanMs.value = answer.topSpanMs
      const before = this.#current.peek()
      if (before !== undefined) this.#current.value = { ...before, ...stateOf(answer) }
      this.#revision.value += 1
    })
  }

  /** Continues the range. */
  apply(update: OverviewUpdate): void {
    batch(() => {
      const totals = TOTALS.map((name) => update[name] ?? 0)
      this.#lastResources = update.resources ?? this.#lastResources
      this.#lastRegions = update.regions ?? this.#lastRegions
      this.#add(update, totals)
      this.#addNamed(update)
      if (update.top !== undefined) this.#top.value = update.top
      this.#renew(update, totals)
      this.#revision.value += 1
    })
  }

  /** Adds an update to the step that it belongs to, and sets the points of that step. */
  #add({ at, spanMs, storeP50Ms, storeP99Ms }: OverviewUpdate, totals: readonly number[]): void {
    const atMs = Math.floor(at / this.#stepMs) * this.#stepMs
    if (this.#step?.atMs !== atMs) this.#step = emptyStep(atMs)
    const step = this.#step
    step.spanMs += spanMs
    for (const [index, total] of totals.entries()) step.totals[index]! += total
    // Quantiles of a step cannot be summed: the highest is shown.
    step.p50 = highest(step.p50, storeP50Ms)
    step.p99 = highest(step.p99, storeP99Ms)
    const perSecond = 1000 / Math.max(1, step.spanMs)
    const candidate = this.#current.peek()?.candidate
    const shadow = candidate === undefined ? Number.NaN : step.totals[2]! * perSecond
    this.traffic.set(atMs, [step.totals[0]! * perSecond, step.totals[1]! * perSecond, shadow])
    this.latency.set(atMs, [step.p50, step.p99])
  }

  /** The same for resources and regions, whose steps are those of the range. */
  #addNamed({ at, spanMs }: OverviewUpdate): void {
    const atMs = Math.floor(at / this.#namedStepMs) * this.#namedStepMs
    const [resources, regions] = [this.#resources.peek(), this.#regions.peek()]
    if (this.#namedStep?.atMs !== atMs) this.#namedStep = emptyNamedStep(atMs, resources, regions)
    const step = this.#namedStep
    step.spanMs += spanMs
    addShares(resources.names, step.resources, this.#lastResources)
    addShares(regions.names, step.regions, this.#lastRegions)
    if (step.spanMs < Math.min(LEAST_STEP_MS, this.#namedStepMs)) return
    setRates(resources, { sums: step.resources, atMs, perSecond: 1000 / step.spanMs })
    setRates(regions, { sums: step.regions, atMs, perSecond: 1000 / step.spanMs })
  }

  #renew(update: OverviewUpdate, totals: readonly number[]): void {
    const before = this.#current.peek()
    if (before === undefined) return
    const untilMs = update.at + update.spanMs
    this.#recent.push({ untilMs, spanMs: update.spanMs, totals })
    while (this.#recent.length > 1 && this.#recent[0]!.untilMs <= untilMs - MEAN_MS) this.#recent.shift()
    const spanMs = Math.max(1, sum(this.#recent.map((recent) => recent.spanMs)))
    const rate = (index: number): number => (sum(this.#recent.map((recent) => recent.totals[index]!)) * 1000) / spanMs
    const { nodes, version, configLagMs, inFlight, firingAlerts, breaker, storeP50Ms, storeP99Ms } = update
    this.#current.value = {
      checks: rate(0),
      denials: rate(1),
      shadowDenials: rate(2),
      withoutStore: rate(3),
      storeP50Ms: storeP50Ms ?? before.storeP50Ms,
      storeP99Ms: storeP99Ms ?? before.storeP99Ms,
      nodes: nodes ?? before.nodes,
      version: version ?? before.version,
      candidate: before.candidate,
      configLagMs: configLagMs ?? before.configLagMs,
      inFlight: inFlight ?? before.inFlight,
      firingAlerts: firingAlerts ?? before.firingAlerts,
      breaker: breaker ?? before.breaker,
      failureMode: before.failureMode,
      alertBounds: before.alertBounds,
    }
  }
}

function namedSeries(names: readonly string[]): NamedSeries {
  const windowOf = (): SeriesWindow => new SeriesWindow(MOST_POINTS, names.length)
  return { names, checks: windowOf(), denials: windowOf(), shares: windowOf() }
}

interface LoadedRange {
  readonly answer: OverviewAnswer
  readonly isLive: boolean
}

/** The series of a range: those listed first on their own, the others together. */
function loadedSeries(listed: readonly TrafficSeries[], most: number, range: LoadedRange): NamedSeries {
  const { answer, isLive } = range
  const own = listed.filter(({ name }) => name !== 'other').slice(0, most)
  const rest = listed.filter((each) => !own.includes(each))
  const series = namedSeries([...own.map(({ name }) => name), 'other'])
  const perSecond = 1000 / answer.stepMs
  const count = series.names.length
  const sums = new Float64Array(count * 2)
  for (let index = firstStep(answer); index < endStep(answer, isLive); index += 1) {
    for (const [position, { checks, denials }] of own.entries()) {
      sums[position] = checks[index] ?? 0
      sums[count + position] = denials[index] ?? 0
    }
    sums[count - 1] = sum(rest.map((each) => each.checks[index] ?? 0))
    sums[2 * count - 1] = sum(rest.map((each) => each.denials[index] ?? 0))
    setRates(series, { sums, atMs: answer.at[index]!, perSecond })
  }
  return series
}

interface Rates {
  /** Checks of all names, then their denials. */
  readonly sums: ArrayLike<number>
  readonly atMs: number
  readonly perSecond: number
}

function setRates(series: NamedSeries, { sums, atMs, perSecond }: Rates): void {
  const count = series.names.length
  const each = (value: (checks: number, denials: number) => number): number[] =>
    Array.from({ length: count }, (_, index) => value(sums[index] ?? 0, sums[count + index] ?? 0))
  series.checks.set(
    atMs,
    each((checks) => checks * perSecond),
  )
  series.denials.set(
    atMs,
    each((_, denials) => denials * perSecond),
  )
  series.shares.set(
    atMs,
    each((checks, denials) => (checks === 0 ? 0 : denials / checks)),
  )
}

/** Adds the shares of an update to sums; names without a series of their own count for the last, which is `other`. */
function addShares(names: readonly string[], sums: Float64Array<ArrayBuffer>, shares: readonly TrafficShare[]): void {
  const count = names.length
  if (count === 0) return
  for (const { name, checks, denials } of shares) {
    const found = names.indexOf(name)
    const index = found < 0 ? count - 1 : found
    sums[index]! += checks
    sums[count + index]! += denials
  }
}

function emptyStep(atMs: number): Step {
  return { atMs, spanMs: 0, totals: new Float64Array(TOTALS.length), p50: Number.NaN, p99: Number.NaN }
}

function emptyNamedStep(atMs: number, resources: NamedSeries, regions: NamedSeries): NamedStep {
  const sumsOf = ({ names }: NamedSeries): Float64Array<ArrayBuffer> => new Float64Array(names.length * 2)
  return { atMs, spanMs: 0, resources: sumsOf(resources), regions: sumsOf(regions) }
}

/** The first step with checks: a young service has no past, and its chart starts where it does. */
function firstStep({ checks }: OverviewAnswer): number {
  const first = checks.findIndex((count) => count > 0)
  return first < 0 ? checks.length : Math.max(0, first - 1)
}

/** The last step of a live range is not over: updates fill it. */
function endStep({ at }: OverviewAnswer, isLive: boolean): number {
  return isLive ? at.length - 1 : at.length
}

type State = Pick<
  CurrentFigures,
  | 'nodes'
  | 'version'
  | 'candidate'
  | 'configLagMs'
  | 'inFlight'
  | 'firingAlerts'
  | 'breaker'
  | 'failureMode'
  | 'alertBounds'
>

function stateOf(answer: OverviewAnswer): State {
  const { nodes, version, candidate, configLagMs, inFlight, firingAlerts, breaker, failureMode, alertBounds } = answer
  return { nodes, version, candidate, configLagMs, inFlight, firingAlerts, breaker, failureMode, alertBounds }
}

type Means = 'checks' | 'denials' | 'shadowDenials' | 'withoutStore' | 'storeP50Ms' | 'storeP99Ms'

function meansOf(answer: OverviewAnswer): Pick<CurrentFigures, Means> {
  const spanMs = Math.max(1, answer.at.length * answer.stepMs)
  const rate = (counts: readonly number[]): number => (sum(counts) * 1000) / spanMs
  const lastKnown = (values: readonly (number | null)[]): number | undefined =>
    values.findLast((value) => value !== null) ?? undefined
  return {
    checks: rate(answer.checks),
    denials: rate(answer.denials),
    shadowDenials: rate(answer.shadowDenials),
    withoutStore: rate(answer.withoutStore),
    storeP50Ms: lastKnown(answer.storeP50Ms),
    storeP99Ms: lastKnown(answer.storeP99Ms),
  }
}

function highest(one: number, other: number | undefined): number {
  if (other === undefined) return one
  return Number.isNaN(one) ? other : Math.max(one, other)
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
