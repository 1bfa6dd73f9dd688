import type { OverviewAnswer, OverviewUpdate } from '@sluice/contract'
import { describe, expect, it } from 'vitest'
import type { SeriesWindow } from '../../charts/series-window.ts'
import { OverviewFigures } from './overview-figures.ts'

const STEP_MS = 10_000

/** Steps of ten seconds, each with these checks and a tenth of them denied. */
function answerOf(checks: readonly number[], more: Partial<OverviewAnswer> = {}): OverviewAnswer {
  const denials = checks.map((count) => count / 10)
  return {
    from: 0,
    to: checks.length * STEP_MS,
    stepMs: STEP_MS,
    at: checks.map((_, index) => index * STEP_MS),
    checks,
    denials,
    withoutStore: checks.map(() => 0),
    storeErrors: checks.map(() => 0),
    storeP50Ms: checks.map(() => 0.5),
    storeP99Ms: checks.map(() => null),
    resources: [{ name: '/a', checks, denials }],
    regions: [{ name: 'EU', checks, denials }],
    shadowChecks: checks,
    shadowDenials: denials,
    nodes: 1,
    version: 3,
    configLagMs: 10,
    inFlight: 0,
    firingAlerts: 0,
    breaker: 'closed',
    alertBounds: {},
    top: [],
    topSpanMs: 600_000,
    ...more,
  }
}

function updateOf(at: number, checks: number, more: Partial<OverviewUpdate> = {}): OverviewUpdate {
  return { at, spanMs: 100, checks, denials: checks / 2, ...more }
}

function pointsOf(window: SeriesWindow): number[][] {
  return Array.from({ length: window.length }, (_, index) => [
    window.timeAt(index),
    ...Array.from({ length: window.seriesCount }, (_each, series) => window.valueAt(series, index)),
  ])
}

describe('a range', () => {
  it('is shown per second, from the first step with checks', () => {
    const figures = new OverviewFigures()
    figures.load(answerOf([0, 0, 0, 100, 200], { candidate: 4 }), false)
    expect(pointsOf(figures.traffic)).toEqual([
      [20_000, 0, 0, 0],
      [30_000, 10, 1, 1],
      [40_000, 20, 2, 2],
    ])
  })

  it('is empty where nothing was checked', () => {
    const figures = new OverviewFigures()
    figures.load(answerOf([0, 0, 0]), true)
    expect([figures.traffic.length, figures.resources.value.checks.length]).toEqual([0, 0])
    figures.apply(updateOf(30_000, 4))
    expect(figures.traffic.firstAtMs).toBe(30_000)
  })

  it('has no line of a candidate where there is none', () => {
    const figures = new OverviewFigures()
    figures.load(answerOf([100]), false)
    expect(figures.traffic.valueAt(2, 0)).toBeNaN()
  })

  it('shows what was not measured as missing', () => {
    const figures = new OverviewFigures()
    figures.load(answerOf([100]), false)
    expect([figures.latency.valueAt(0, 0), figures.latency.valueAt(1, 0)]).toEqual([0.5, Number.NaN])
  })

  it('gives the first resources a line of their own, and all others one together', () => {
    const figures = new OverviewFigures()
    const resources = Array.from({ length: 9 }, (_, index) => ({ name: `/r${index}`, checks: [10], denials: [1] }))
    figures.load(answerOf([100], { resources }), false)
    const { names, denials, shares } = figures.resources.value
    expect(names).toEqual(['/r0', '/r1', '/r2', '/r3', '/r4', '/r5', '/r6', 'other'])
    expect([denials.valueAt(0, 0), denials.valueAt(7, 0)]).toEqual([0.1, 0.2])
    expect(shares.valueAt(7, 0)).toBe(0.1)
  })
})

describe('live updates', () => {
  it('are added up for each second', () => {
    const figures = new OverviewFigures()
    figures.load(answerOf([100, 0]), true)
    for (let index = 0; index < 15; index += 1) figures.apply(updateOf(20_000 + index * 100, 4))
    expect(pointsOf(figures.traffic).slice(1)).toEqual([
      [20_000, 40, 20, Number.NaN],
      [21_000, 40, 20, Number.NaN],
    ])
    expect(figures.traffic.firstAtMs).toBe(0)
  })

  it('keep what an update leaves out', () => {
    const figures = new OverviewFigures()
    figures.load(answerOf([100, 0]), true)
    figures.apply(updateOf(20_000, 4, { breaker: 'open', inFlight: 7 }))
    figures.apply(updateOf(20_100, 4))
    expect(figures.current.value).toMatchObject({ breaker: 'open', inFlight: 7, version: 3, checks: 40, denials: 20 })
  })

  it('count a resource without a line of its own as other, and show a step once two seconds of it are known', () => {
    const figures = new OverviewFigures()
    figures.load(answerOf([100, 0]), true)
    const resources = [
      { name: '/a', checks: 2, denials: 1 },
      { name: '/new', checks: 2, denials: 2 },
    ]
    const { denials, shares } = figures.resources.value
    figures.apply(updateOf(20_000, 4, { resources, spanMs: 1000 }))
    expect(denials.lastAtMs).toBe(0)
    figures.apply(updateOf(21_000, 4, { spanMs: 1000 }))
    expect(denials.lastAtMs).toBe(20_000)
    expect([denials.valueAt(0, 1), denials.valueAt(1, 1), shares.valueAt(1, 1)]).toEqual([1, 2, 1])
  })

  it('show the mean of the last five seconds', () => {
    const figures = new OverviewFigures()
    figures.load(answerOf([100, 0]), true)
    for (let second = 0; second < 10; second += 1) {
      figures.apply(updateOf(20_000 + second * 1000, second < 5 ? 0 : 10, { spanMs: 1000 }))
    }
    expect(figures.current.value?.checks).toBe(10)
  })

  it('raise the revision, so that charts are drawn', () => {
    const figures = new OverviewFigures()
    figures.load(answerOf([100]), true)
    const before = figures.revision.value
    figures.apply(updateOf(20_000, 4))
    expect(figures.revision.value).toBe(before + 1)
  })
})
