import type { Scenario } from './scenario.ts'
import { DRAWN_COLUMNS, LIMIT_LEVEL, MOST_CALLS, SIMULATED_WINDOWS, windowMsOf } from './scenario.ts'

/** Share of a window that a burst takes, so that its calls have an order. */
const BURST_SHARE = 0.05

/** The calls of a scenario. */
export interface Traffic {
  /** When each call arrives, in microseconds since the beginning, in order. */
  readonly arrivals: readonly number[]
  /** Length of the simulation in microseconds. */
  readonly lengthMicros: number
  /** Whether calls were left out because there would be too many. */
  readonly isCut: boolean
}

/** When the calls of a scenario arrive. */
export function trafficOf(scenario: Scenario): Traffic {
  const windowMicros = windowMsOf(scenario) * 1000
  const lengthMicros = windowMicros * SIMULATED_WINDOWS
  const all = arrivalsOf(scenario, windowMicros, lengthMicros)
    .map((at) => Math.round(at))
    .sort((one, other) => one - other)
  return { arrivals: all.slice(0, MOST_CALLS), lengthMicros, isCut: all.length > MOST_CALLS }
}

function arrivalsOf(scenario: Scenario, windowMicros: number, lengthMicros: number): number[] {
  const { shape, rate, size } = scenario
  const burstMicros = windowMicros * BURST_SHARE
  const burstFrom = (start: number): number[] =>
    Array.from({ length: size }, (_, call) => start + (call * burstMicros) / size)
  switch (shape) {
    case 'steady':
      return steady(rate, lengthMicros)
    case 'burst':
      // In the middle of each window, where no algorithm has a boundary.
      return [
        ...steady(rate, lengthMicros),
        ...eachWindow(windowMicros).flatMap((start) => burstFrom(start + windowMicros / 2)),
      ]
    case 'boundary':
      // Every other boundary: the burst after it takes what the next window has.
      return [1, 3].flatMap((window) => [
        ...burstFrom(window * windowMicros - burstMicros),
        ...burstFrom(window * windowMicros),
      ])
    case 'drawn':
      return drawn(scenario, lengthMicros)
  }
}

function eachWindow(windowMicros: number): readonly number[] {
  return Array.from({ length: SIMULATED_WINDOWS }, (_, window) => window * windowMicros)
}

/** Evenly spaced; the first call arrives at the beginning. */
function steady(rate: number, lengthMicros: number): number[] {
  const count = Math.min(MOST_CALLS + 1, Math.ceil((rate * lengthMicros) / 1_000_000))
  return Array.from({ length: count }, (_, call) => (call * 1_000_000) / rate)
}

/** As many calls in each column as its level says, evenly spaced. What rounding takes from one is in the next. */
function drawn({ levels, limit }: Scenario, lengthMicros: number): number[] {
  const columnMicros = lengthMicros / DRAWN_COLUMNS
  const callsPerLevel = (limit * SIMULATED_WINDOWS) / DRAWN_COLUMNS / LIMIT_LEVEL
  let owed = 0
  return levels.flatMap((level, column) => {
    owed += level * callsPerLevel
    const count = Math.floor(owed + 1e-9)
    owed -= count
    return Array.from({ length: count }, (_, call) => (column + call / count) * columnMicros)
  })
}
