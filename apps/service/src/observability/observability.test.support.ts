import type { ConfigStats } from '@sluice/config-store'
import type { Alert } from '@sluice/contract'
import { memoryStore } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import type { PolicyEngineOptions } from '@sluice/core/policy'
import type { LineStream, MetricsSnapshot, Sleep } from '@sluice/runtime'
import { Logger, LogOutput, MetricRegistry } from '@sluice/runtime'
import { FakeClock, FakeTimers, seededRandom } from '@sluice/testing'
import type { RequestObserver } from '../listeners/http/request-observer.ts'
import { observed } from '../listeners/http/request-observer.ts'
import type { AnyHandler, AnyRequest } from '../operations/handler.ts'
import type { ServiceMessages } from '../service-context.ts'
import { SingleThread } from '../thread-messages/message-bus.ts'
import { ProcessCluster } from './cluster/process-cluster.ts'
import type { ReportExchange } from './cluster/report-exchange.ts'
import { DecisionSample } from './decision-sample.ts'
import type { RollupRow, RollupStore } from './history/rollup-recorder.ts'
import type { CheckSignals } from './instrument.ts'
import { Instrument, ObservedEngine } from './instrument.ts'
import type { ProcessReadings } from './metrics/process-metrics.ts'
import { collectReports, shareReports } from './metrics-aggregator.ts'
import type { Tracing } from './tracing/tracing.ts'

// What the tests of observability share: an observed engine on a fake clock, and readers of what it shows.

/** A secret for digests, which tests need not keep. */
export const SECRET: Uint8Array = new Uint8Array(32).fill(7)

/** A process that has done nothing. */
export const IDLE_PROCESS: ProcessReadings = {
  startedAt: 0,
  cpuMicros: () => 0,
  residentBytes: () => 0,
  firingAlerts: () => 0,
  webhookCounts: () => ({ pending: 0, dead: 0, delivered: 0, failed: 0, failedTries: 0, lost: 0 }),
}

/** What a {@link Scene} may be made with. */
export interface SceneOptions extends Partial<PolicyEngineOptions<'sync'>> {
  readonly signals?: CheckSignals
  readonly tracer?: Tracing
  /** The region of the node. */
  readonly region?: string
}

/** An engine whose decisions are counted, and what its test controls. */
export interface Scene {
  readonly clock: FakeClock
  readonly timers: FakeTimers
  readonly sleep: Sleep
  readonly metrics: MetricRegistry
  readonly log: CapturedLog
  readonly instrument: Instrument
  readonly engine: ObservedEngine<'sync'>
  readonly decisions: DecisionSample
  /** How far the stopwatch has come, in milliseconds: each look at it moves it on by one. */
  readonly monotonicMs: () => number
  /** What the followed configuration says of itself. */
  config: ConfigStats
}

const NEVER_LOADED: ConfigStats = {
  source: 'none',
  enforcedVersion: undefined,
  candidateVersion: undefined,
  refused: [],
  position: undefined,
  refreshes: 0,
  failures: 0,
  lastRefreshAt: undefined,
  unavailableSince: undefined,
  lagMs: 0,
  notifications: 0,
  polls: 0,
}

/** An observed engine on a memory store. */
export function createScene({ signals, tracer, region, ...options }: SceneOptions = {}): Scene {
  const clock = options.clock instanceof FakeClock ? options.clock : new FakeClock()
  const timers = new FakeTimers(clock)
  const random = seededRandom(1)
  const metrics = new MetricRegistry()
  const log = captureLog(clock)
  let stopwatch = 0
  const monotonicMs = (): number => ++stopwatch
  const decisions = new DecisionSample({ clock, secret: SECRET, name: 'sample' })
  const about = { signals, tracer, region, decisions }
  const instrument = new Instrument({ metrics, log: log.logger, clock, secret: SECRET, ...about })
  const store = options.store ?? memoryStore({ clock, random })
  const engine = new ObservedEngine<'sync'>(
    { clock, random, ...options, store, observer: instrument.observePolicy },
    { observer: instrument, monotonicMs },
  )
  const scene: Scene = {
    clock,
    timers,
    sleep: fakeSleep(timers),
    metrics,
    log,
    instrument,
    engine,
    decisions,
    monotonicMs,
    config: NEVER_LOADED,
  }
  instrument.watch({
    store,
    engine,
    follower: { stats: () => scene.config },
    thread: { loopDelayMs: () => undefined, heapBytes: () => 1024, logCounts: () => log.output.counts() },
  })
  return scene
}

/** What a {@link SceneNode} may be made with. */
export interface SceneNodeOptions {
  readonly id?: string
  readonly name?: string
  /** Default: it shares with none. */
  readonly exchange?: ReportExchange
  readonly process?: ProcessReadings
  readonly alerts?: readonly Alert[]
}

/** The one thread of a process whose figures are shared. */
export interface SceneNode {
  readonly threads: SingleThread<ServiceMessages>
  readonly cluster: ProcessCluster
}

/** A node around a scene. Its loop runs once `cluster.start` was called. */
export function createSceneNode(scene: Scene, options: SceneNodeOptions = {}): SceneNode {
  const { clock, sleep, log, instrument, decisions } = scene
  const threads = new SingleThread<ServiceMessages>()
  shareReports(threads, 'only', () => instrument.report())
  collectReports(threads, options.process ?? IDLE_PROCESS)
  threads.handle('config.stats', () => scene.config)
  decisions.share(threads)
  threads.handleInMain('alerts.list', () => options.alerts ?? [])
  const cluster = new ProcessCluster({
    settings: { redis: undefined, region: undefined, threads: 1 },
    node: options.id ?? 'node-1',
    nodeName: options.name ?? 'one',
    version: '1.0.0',
    exchange: options.exchange,
    ...{ threads, sleep, secret: SECRET, log: log.logger, nowMs: () => clock.nowMicros() / MICROS_PER_MS },
  })
  return { threads, cluster }
}

/** Sleeps on fake timers. */
function fakeSleep(timers: FakeTimers): Sleep {
  return (delayMs, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(signal.reason)
        return
      }
      const onAbort = (): void => {
        cancel()
        reject(signal?.reason)
      }
      const cancel = timers.schedule(delayMs, () => {
        signal?.removeEventListener('abort', onAbort)
        resolve()
      })
      signal?.addEventListener('abort', onAbort, { once: true })
    })
}

/** A log whose lines can be read. */
export interface CapturedLog {
  readonly logger: Logger
  readonly output: LogOutput
  /** The text of every line. */
  readonly lines: string[]
  /** Every line, parsed. */
  entries(): readonly Readonly<Record<string, unknown>>[]
}

/** A log of everything, down to `debug`. */
export function captureLog(clock: FakeClock): CapturedLog {
  const lines: string[] = []
  const stream: LineStream = {
    write: (text, written) => {
      lines.push(text)
      written()
      return true
    },
    on: () => undefined,
    off: () => undefined,
  }
  const output = new LogOutput({ stream, nowMs: () => clock.nowMicros() / MICROS_PER_MS, level: 'debug' })
  return {
    output,
    logger: new Logger(output),
    lines,
    entries: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>),
  }
}

/** The numbers of a metric by its label values, joined by blanks; those of histograms are their counts. */
export function numbersOf(snapshot: MetricsSnapshot, name: string): Readonly<Record<string, number>> {
  const family = snapshot.families.find((one) => one.name === name)
  if (family === undefined) throw new Error(`there is no metric ${name}`)
  if (family.type === 'histogram') {
    const countOf = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0)
    return Object.fromEntries(family.samples.map(({ values, counts }) => [values.join(' '), countOf(counts)]))
  }
  return Object.fromEntries(family.samples.map(({ values, value }) => [values.join(' '), value]))
}

/** A request to an operation, as handlers get it. */
export function requestOf(parts: Partial<AnyRequest> = {}): AnyRequest {
  return {
    parameters: {},
    headers: {},
    precondition: undefined,
    body: undefined,
    principal: undefined,
    remoteAddress: '127.0.0.1',
    signal: new AbortController().signal,
    ...parts,
  }
}

/** Handlers by `METHOD /path`, each of whose requests is observed. */
export function observedHandlers(
  observer: RequestObserver,
  handlers: Readonly<Record<string, AnyHandler>>,
): Readonly<Record<string, AnyHandler>> {
  return Object.fromEntries(
    Object.entries(handlers).map(([operation, handle]) => [operation, observed(handle, observer.recordOf(operation))]),
  )
}

/** A line of a page of metrics. */
export interface ParsedSample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/**
 * Reads a page of metrics in the Prometheus text format as its description has it, and shares nothing with what writes
 * it. Throws at the first line that is not right.
 */
export function parseMetricsPage(page: string): readonly ParsedSample[] {
  if (!page.endsWith('\n')) throw new Error('the last line does not end')
  return page
    .slice(0, -1)
    .split('\n')
    .filter((line) => !/^# (?:HELP|TYPE|EOF)/.test(line))
    .map(parseSample)
}

function parseSample(line: string): ParsedSample {
  const [, name, block, number] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
  if (name === undefined || number === undefined) throw new Error(`not a sample: ${line}`)
  const value = number === '+Inf' ? Number.POSITIVE_INFINITY : Number(number)
  if (Number.isNaN(value)) throw new Error(`not a number: ${line}`)
  return { name, labels: parseLabels(block ?? ''), value }
}

function parseLabels(block: string): Readonly<Record<string, string>> {
  const labels: Record<string, string> = {}
  let rest = block
  while (rest !== '') {
    const [whole, name, text] = /^([a-zA-Z_]\w*)="((?:[^"\\]|\\["\\n])*)"(?:,|$)/.exec(rest) ?? []
    if (whole === undefined || name === undefined || text === undefined) throw new Error(`not labels: ${block}`)
    labels[name] = text.replaceAll(/\\(["\\n])/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped))
    rest = rest.slice(whole.length)
  }
  return labels
}

/** A place for history in memory. */
export class MemoryRollups implements RollupStore {
  readonly #rows = new Map<string, RollupRow>()

  put(rows: readonly RollupRow[]): Promise<void> {
    for (const row of rows) this.#rows.set(`${row.stepMs} ${row.at} ${row.source}`, row)
    return Promise.resolve()
  }

  list({ fromMs, toMs, stepMs }: Parameters<RollupStore['list']>[0]): Promise<readonly RollupRow[]> {
    const found = [...this.#rows.values()].filter((row) => row.stepMs === stepMs && row.at >= fromMs && row.at < toMs)
    return Promise.resolve(found.sort((one, other) => one.at - other.at))
  }

  forget({ stepMs, beforeMs }: Parameters<RollupStore['forget']>[0]): Promise<void> {
    for (const [key, row] of this.#rows) if (row.stepMs === stepMs && row.at < beforeMs) this.#rows.delete(key)
    return Promise.resolve()
  }
}
