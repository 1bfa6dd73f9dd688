import { MICROS_PER_SECOND } from '../system/clock-and-timers.ts'

/**
 * A constant rate as a fraction: `units / micros` micro-units flow in every microsecond, which is the same number as
 * units in every second. Both are whole and above 0, in lowest terms, so that "7 per second" is exactly 7 and "100 per
 * minute" has no rounding that could add up.
 */
export interface Rate {
  readonly units: number
  readonly micros: number
}

/** Micro-units in a unit: levels are kept in micro-units, so that a fractional rate still leaves whole numbers. */
export const MICROS_PER_UNIT = 1_000_000

/** Largest denominator tried when a decimal rate is turned into a fraction; 1/3 becomes 1/3, 0.1 becomes 1/10. */
const LARGEST_DENOMINATOR = 1_000_000

/** `limit` units in `windowMicros`. Both whole and above 0. */
export function rateOverWindow(limit: number, windowMicros: number): Rate {
  // limit units per window = limit x 10^6 micro-units per windowMicros microseconds; cancel 10^6 first to stay exact.
  const common = greatestCommonDivisor(MICROS_PER_SECOND, windowMicros)
  const units = limit * (MICROS_PER_SECOND / common)
  const micros = windowMicros / common
  const shared = greatestCommonDivisor(units, micros)
  return sharedRate(units / shared, micros / shared)
}

/**
 * Rates that were made lately: the rules of a large set have few different ones, and equal ones are one object in
 * memory.
 */
const rates = new Map<string, Rate>()
const MOST_RATES = 1024

function sharedRate(units: number, micros: number): Rate {
  const text = `${units}/${micros}`
  let rate = rates.get(text)
  if (rate === undefined) {
    if (rates.size >= MOST_RATES) rates.clear()
    rate = Object.freeze({ units, micros })
    rates.set(text, rate)
  }
  return rate
}

/** The fraction nearest to `perSecond` (above 0, may be fractional), by continued fractions. */
export function ratePerSecond(perSecond: number): Rate {
  let [previousUnits, units] = [1, Math.floor(perSecond)]
  let [previousMicros, micros] = [0, 1]
  let rest = perSecond - units
  while (rest > 1e-9 && Math.abs(units / micros - perSecond) > perSecond * 1e-12) {
    const inverse = 1 / rest
    const whole = Math.floor(inverse)
    const nextMicros = whole * micros + previousMicros
    if (nextMicros > LARGEST_DENOMINATOR) break
    ;[previousUnits, units] = [units, whole * units + previousUnits]
    ;[previousMicros, micros] = [micros, nextMicros]
    rest = inverse - whole
  }
  return units > 0 ? sharedRate(units, micros) : sharedRate(1, Math.round(1 / perSecond))
}

/**
 * The rate of one of `parts` equal parts (whole, above 0): exact while the fraction is made of safe integers. Beyond
 * that it is rounded down, by less than one part in 10^8 for each of the parts; the slowest rate there is, one unit in
 * 2^53 - 1 seconds, stands for anything slower.
 */
export function ratePart(rate: Rate, parts: number): Rate {
  const shared = greatestCommonDivisor(rate.units, parts)
  const units = rate.units / shared
  const micros = rate.micros * (parts / shared)
  if (micros <= Number.MAX_SAFE_INTEGER) return { units, micros }
  return nearestBelow(BigInt(units), BigInt(rate.micros) * BigInt(parts / shared))
}

/**
 * A fraction not above `units / micros`, in safe integers: with few units they become 1, with many both are scaled
 * down.
 */
function nearestBelow(units: bigint, micros: bigint): Rate {
  const largest = BigInt(Number.MAX_SAFE_INTEGER)
  if (units * units < largest) {
    const alone = roundedUp(micros, units)
    return { units: 1, micros: Number(alone < largest ? alone : largest) }
  }
  const scale = roundedUp(micros, largest)
  return { units: Number(units / scale), micros: Number(roundedUp(micros, scale)) }
}

function roundedUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor
}

/** Micro-units that flow in `elapsedMicros`, rounded down: what has not wholly arrived is not there yet. */
export function flowed(rate: Rate, elapsedMicros: number): number {
  return scaleDown(elapsedMicros, rate.units, rate.micros)
}

/**
 * The least number of microseconds in which at least `microUnits` flow: the exact inverse of {@link flowed}, up to 2^53
 * - 1 (285 years), which also stands for anything longer.
 */
export function microsToFlow(rate: Rate, microUnits: number): number {
  if (microUnits <= 0) return 0
  const product = microUnits * rate.micros
  return product <= Number.MAX_SAFE_INTEGER ? Math.ceil(product / rate.units) : searchMicros(rate, microUnits)
}

/**
 * {@link microsToFlow} for numbers whose product is not safe: an estimate, corrected by the step or two it may be off.
 */
function searchMicros(rate: Rate, microUnits: number): number {
  let micros = scaleDown(microUnits, rate.micros, rate.units)
  if (micros >= Number.MAX_SAFE_INTEGER) return Number.MAX_SAFE_INTEGER
  while (micros > 0 && scaleDown(micros - 1, rate.units, rate.micros) >= microUnits) micros--
  while (scaleDown(micros, rate.units, rate.micros) < microUnits) micros++
  return micros
}

/**
 * floor(value x numerator / denominator). Exact while the product (or, beyond 2^53, the product of the remainder) is a
 * safe integer; past that it is the nearest double, the same in every implementation that uses IEEE doubles.
 */
function scaleDown(value: number, numerator: number, denominator: number): number {
  const product = value * numerator
  if (product <= Number.MAX_SAFE_INTEGER) return Math.floor(product / denominator)
  return scaleLarge(value, numerator, denominator)
}

function scaleLarge(value: number, numerator: number, denominator: number): number {
  const whole = Math.floor(value / denominator)
  const rest = value - whole * denominator
  return whole * numerator + Math.floor((rest * numerator) / denominator)
}

function greatestCommonDivisor(a: number, b: number): number {
  let [x, y] = [a, b]
  while (y > 0) [x, y] = [y, x % y]
  return x
}
