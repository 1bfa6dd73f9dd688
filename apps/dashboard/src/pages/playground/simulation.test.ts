import { describe, expect, it } from 'vitest'
import type { AlgorithmName, Scenario } from './scenario.ts'
import { ALGORITHMS, DRAWN_COLUMNS, FIRST_SCENARIO, LIMIT_LEVEL, SIMULATED_WINDOWS } from './scenario.ts'
import { COLUMNS_PER_WINDOW, RESULT_COLUMNS, simulate, worstWindow } from './simulation.ts'

const TEN_IN_TEN_SECONDS: Scenario = { ...FIRST_SCENARIO, limit: 10, window: '10s', burst: 10, size: 10, holdMs: 1000 }

function lanesOf(scenario: Partial<Scenario>) {
  const { lanes } = simulate({ ...TEN_IN_TEN_SECONDS, algorithms: ALGORITHMS, ...scenario })
  return Object.fromEntries(lanes.map((lane) => [lane.algorithm, lane])) as Record<
    AlgorithmName,
    (typeof lanes)[number]
  >
}

function admittedCounts(scenario: Partial<Scenario>): Partial<Record<AlgorithmName, number>> {
  return Object.fromEntries(Object.values(lanesOf(scenario)).map((lane) => [lane.algorithm, lane.admittedCount]))
}

describe('boundary attack', () => {
  const lanes = lanesOf({ shape: 'boundary' })

  it('passes fixed windows twice within a second, and not the others', () => {
    const worst = Object.fromEntries(Object.values(lanes).map((lane) => [lane.algorithm, lane.worstWindow]))
    expect(worst).toEqual({
      'fixed-window': 20,
      'sliding-window-counter': 10,
      'sliding-window-log': 10,
      gcra: 10,
      'token-bucket': 10,
      'leaky-bucket-meter': 10,
      'leaky-bucket-queue': 10,
      hybrid: 20,
      concurrency: 10,
    })
  })

  it('shows the double burst in the two columns around the boundary', () => {
    const { admitted, denied } = lanes['fixed-window']
    const around = admitted.slice(COLUMNS_PER_WINDOW - 2, COLUMNS_PER_WINDOW + 2)
    expect(around.reduce((sum, count) => sum + count)).toBe(20)
    expect(denied.every((count) => count === 0)).toBe(true)
    const exact = lanes['sliding-window-log']
    expect(exact.admitted.slice(COLUMNS_PER_WINDOW, COLUMNS_PER_WINDOW + 2)).toEqual([0, 0])
    expect(exact.deniedCount).toBe(20)
  })
})

describe('steady traffic', () => {
  it('at the rate of the limit passes everywhere', () => {
    const { 'sliding-window-counter': estimated, ...exact } = admittedCounts({ shape: 'steady', rate: 1 })
    expect(new Set(Object.values(exact))).toEqual(new Set([40]))
    // At the start of a window the estimate takes the whole previous window into account.
    expect(estimated).toBe(37)
  })

  it('at twice the rate is cut to the limit, with what bursts allow on top', () => {
    expect(admittedCounts({ shape: 'steady', rate: 2 })).toEqual({
      'fixed-window': 40,
      'sliding-window-counter': 37,
      'sliding-window-log': 40,
      // The burst of 10, and one each second from then on.
      gcra: 49,
      'token-bucket': 49,
      'leaky-bucket-meter': 49,
      'leaky-bucket-queue': 49,
      // The windows, the burst of 10, and one every two seconds from second 5 on.
      hybrid: 67,
      // Each call takes a second, so two are in progress at most.
      concurrency: 80,
    })
  })

  it('counts every call once', () => {
    const scenario: Scenario = { ...TEN_IN_TEN_SECONDS, algorithms: ALGORITHMS, shape: 'steady', rate: 7.3 }
    const { lanes, offered, offeredCount } = simulate(scenario)
    expect(offeredCount).toBe(292)
    expect(offered.reduce((sum, count) => sum + count)).toBe(292)
    for (const lane of lanes) {
      expect(lane.admittedCount + lane.deniedCount).toBe(292)
      expect(lane.denied.reduce((sum, count) => sum + count)).toBe(lane.deniedCount)
      expect(lane.remaining).toHaveLength(RESULT_COLUMNS)
    }
  })
})

describe('bursts', () => {
  it('of twice the limit are cut to it', () => {
    const counts = admittedCounts({ shape: 'burst', rate: 0, size: 20, burst: 10 })
    expect(counts).toMatchObject({
      'fixed-window': 40,
      // 10, then half of what the window before had is still counted: 5, 7 and 6.
      'sliding-window-counter': 28,
      'sliding-window-log': 40,
      gcra: 40,
      'token-bucket': 40,
      'leaky-bucket-queue': 40,
      hybrid: 65,
      concurrency: 40,
    })
  })

  it('leave a queue at an even pace', () => {
    const { 'leaky-bucket-queue': queue } = lanesOf({ shape: 'burst', rate: 0, size: 10 })
    expect(Math.max(...queue.admitted)).toBe(1)
    expect(queue.longestDelayMs).toBe(8550)
  })
})

describe('drawn traffic', () => {
  it('has the rate of the limit at the middle level', () => {
    const levels = new Array<number>(DRAWN_COLUMNS).fill(LIMIT_LEVEL)
    const { offeredCount, lanes } = simulate({ ...TEN_IN_TEN_SECONDS, shape: 'drawn', levels })
    expect(offeredCount).toBe(10 * SIMULATED_WINDOWS)
    expect(lanes.map((lane) => lane.deniedCount)).toEqual([0, 3, 0, 0])
  })

  it('is cut where there would be too many calls', () => {
    const { offeredCount, isCut } = simulate({ ...TEN_IN_TEN_SECONDS, shape: 'steady', rate: 1000, window: '1m' })
    expect(offeredCount).toBe(20_000)
    expect(isCut).toBe(true)
  })
})

describe('worstWindow', () => {
  it('counts within a half-open span', () => {
    expect(worstWindow([0, 10], 10)).toEqual({ count: 1, start: 0 })
    expect(worstWindow([0, 9], 10)).toEqual({ count: 2, start: 0 })
    expect(worstWindow([0, 1, 50, 51, 59, 60], 10)).toEqual({ count: 3, start: 50 })
    expect(worstWindow([], 10)).toEqual({ count: 0, start: 0 })
  })
})
