import type { CalendarPeriod } from './calendar.ts'
import { isTimeZone } from './calendar.ts'
import { durationMicros, durationMs } from './duration.ts'
import type {
  FixedWindowLimit,
  Limit,
  LogLimit,
  MeterLimit,
  OverlayLimit,
  RolloverLimit,
  SegmentLimit,
  SlidingCounterLimit,
} from './limit.ts'
import { MICROS_PER_UNIT, rateOverWindow, ratePerSecond } from './rate.ts'
import type { CalendarWindow, FailureMode } from './rule.ts'
import {
  BURST_BUCKET_OPTIONS,
  CALENDAR_DEFAULTS,
  CALENDAR_OPTIONS,
  CALENDAR_PERIODS,
  EXPECTED_RATE,
  EXPECTED_WINDOWS,
  LARGEST_LOG_UNITS,
  LARGEST_ROLLOVER_UNITS,
  LARGEST_UNITS,
  MOST_SEGMENTS,
  MOST_WINDOWS,
  SLOWEST_RATE,
  WEEKDAYS,
  WINDOW_ENTRY_OPTIONS,
} from './rule-options.ts'
import { flag, invalid, type Loose, microUnits, partOf, units, whole } from './rule-values.ts'

// How the rules of each algorithm become limits. The rule's options have known names here, and any values.

interface Identity {
  readonly id: string
  readonly rule: string
  readonly stateSize: number
  readonly fixedSize: boolean
  readonly space0: number
  readonly space1: number
  readonly failureMode: FailureMode | undefined
}

/** Who a limit is, before it is known what its states look like; the compiler adds that. */
function identityOf(rule: string, id: string): Identity {
  return { id, rule, stateSize: 0, fixedSize: false, space0: 0, space1: 0, failureMode: undefined }
}

export function compileTokenBucket(name: string, rule: Loose): Limit[] {
  return [tokenBucket(identityOf(name, name), rule)]
}

export function compileLeakyBucketMeter(name: string, rule: Loose): Limit[] {
  return [{ ...level(identityOf(name, name), rule, 'leakPerSecond'), algorithm: 'leaky-bucket-meter' }]
}

export function compileLeakyBucketQueue(name: string, rule: Loose): Limit[] {
  return [{ ...level(identityOf(name, name), rule, 'ratePerSecond'), algorithm: 'leaky-bucket-queue' }]
}

export function compileHybrid(name: string, rule: Loose): Limit[] {
  return [hybrid(identityOf(name, name), rule)]
}

export function compileConcurrency(name: string, rule: Loose): Limit[] {
  const limit = units(name, 'limit', rule['limit'])
  const leaseMicros = durationMicros(rule['lease'], 'lease')
  return [{ ...identityOf(name, name), algorithm: 'concurrency', limit, capacity: limit, leaseMicros }]
}

export function compileGcra(name: string, rule: Loose): Limit[] {
  return windowsOf(name, rule, lengthOf).map(({ identity, spec }) => gcraLimit(identity, { ...rule, ...spec }))
}

export function compileFixedWindow(name: string, rule: Loose): Limit[] {
  return windowsOf(name, rule, calendarOrLengthOf).map(({ identity, spec }) =>
    withBurst(identity, fixedWindowLimit, { ...rule, ...spec }),
  )
}

export function compileSlidingWindowCounter(name: string, rule: Loose): Limit[] {
  return windowsOf(name, rule, lengthOf).map(({ identity, spec }) =>
    withBurst(identity, slidingCounterLimit, { ...rule, ...spec }),
  )
}

export function compileSlidingWindowLog(name: string, rule: Loose): Limit[] {
  return windowsOf(name, rule, lengthOf).map(({ identity, spec }) =>
    withBurst(identity, slidingLogLimit, { ...rule, ...spec }),
  )
}

function lengthOf(_name: string, spec: Loose): string {
  return String(durationMs(spec['window'], 'window'))
}

function calendarOrLengthOf(name: string, spec: Loose): string {
  return typeof spec['window'] === 'object' ? JSON.stringify(fixedWindowOf(name, spec)) : lengthOf(name, spec)
}

/**
 * The windows of a rule with the identity of each: by length, so that a window added later does not shift the others.
 */
function windowsOf(
  name: string,
  rule: Loose,
  labelOf: (name: string, spec: Loose) => string,
): { identity: Identity; spec: Loose }[] {
  const windows = rule['windows']
  if (windows === undefined) return [{ identity: identityOf(name, name), spec: {} }]
  if (!Array.isArray(windows) || windows.length === 0 || windows.length > MOST_WINDOWS) {
    throw invalid(name, {
      problem: 'has unusable "windows"',
      received: windows,
      expected: EXPECTED_WINDOWS,
    })
  }
  for (const option of Object.keys(WINDOW_ENTRY_OPTIONS)) {
    if (rule[option] !== undefined) {
      throw invalid(name, {
        problem: `has both "windows" and "${option}"`,
        expected: 'one of them',
        action: 'Put it into an entry of "windows".',
      })
    }
  }
  const seen = new Set<string>()
  return windows.map((entry: unknown) => {
    const spec = partOf(name, 'windows', { value: entry, known: Object.keys(WINDOW_ENTRY_OPTIONS) })
    const label = labelOf(name, spec)
    if (seen.has(label)) {
      throw invalid(name, {
        problem: 'has two "windows" of one length',
        received: spec['window'],
        expected: 'windows of different lengths',
      })
    }
    seen.add(label)
    return { identity: identityOf(name, `${name}#${label}`), spec }
  })
}

/** The limit of a window, with the `burst` on top of it that a rule may ask for. */
function withBurst(
  identity: Identity,
  limitOf: (identity: Identity, rule: Loose) => OverlayLimit['base'],
  rule: Loose,
): Limit {
  const base = limitOf(identity, rule)
  return rule['burst'] === undefined ? base : burstOver(identity, base, rule)
}

function gcraLimit(identity: Identity, rule: Loose): MeterLimit {
  const limit = units(identity.rule, 'limit', rule['limit'])
  const burst = rule['burst'] === undefined ? limit : units(identity.rule, 'burst', rule['burst'])
  const capacity = limit === 0 ? 0 : burst
  return {
    ...identity,
    algorithm: 'gcra',
    limit,
    capacity,
    full: capacity * MICROS_PER_UNIT,
    rate: rateOverWindow(Math.max(1, limit), windowMicros(rule)),
  }
}

function fixedWindowLimit(identity: Identity, rule: Loose): FixedWindowLimit {
  const limit = units(identity.rule, 'limit', rule['limit'])
  const rolloverMax = flag(identity.rule, 'rollover', rule['rollover']) ? limit : 0
  const window = fixedWindowOf(identity.rule, rule)
  return { ...identity, algorithm: 'fixed-window', limit, capacity: limit + rolloverMax, window, rolloverMax }
}

function slidingCounterLimit(identity: Identity, rule: Loose): SlidingCounterLimit {
  const limit = units(identity.rule, 'limit', rule['limit'])
  return {
    ...identity,
    algorithm: 'sliding-window-counter',
    limit,
    capacity: limit,
    windowMicros: windowMicros(rule),
  }
}

function slidingLogLimit(identity: Identity, rule: Loose): LogLimit | SegmentLimit {
  const limit = units(identity.rule, 'limit', rule['limit'])
  const micros = windowMicros(rule)
  if (rule['segments'] !== undefined) {
    const segments = whole(identity.rule, 'segments', { value: rule['segments'], least: 1, most: MOST_SEGMENTS })
    return { ...identity, algorithm: 'sliding-window-segments', limit, capacity: limit, windowMicros: micros, segments }
  }
  if (limit > LARGEST_LOG_UNITS) {
    throw invalid(identity.rule, {
      problem: 'has a "limit" too large for the exact log, which remembers every call',
      received: limit,
      expected: `at most ${LARGEST_LOG_UNITS}`,
      action: 'Add "segments: 60" for constant memory, or use gcra.',
    })
  }
  return { ...identity, algorithm: 'sliding-window-log', limit, capacity: limit, windowMicros: micros }
}

/** `burst` on a window: that many units may pass at one instant, the part above the limit refilling over one window. */
function burstOver(identity: Identity, base: OverlayLimit['base'], rule: Loose): OverlayLimit {
  const burst = whole(identity.rule, 'burst', { value: rule['burst'], least: base.limit, most: LARGEST_UNITS })
  if (base.algorithm === 'fixed-window' && (typeof base.window !== 'number' || base.rolloverMax > 0)) {
    throw invalid(identity.rule, {
      problem: `has "burst" together with ${base.rolloverMax > 0 ? '"rollover"' : 'a calendar window'}`,
      expected: 'one of them',
      action: 'Use the hybrid algorithm, whose burst has a refill rate of its own.',
    })
  }
  const extra = burst - base.limit
  const length = base.algorithm === 'fixed-window' ? (base.window as number) : base.windowMicros
  const rate = rateOverWindow(Math.max(1, extra), length)
  return overlay(identity, base, { capacity: extra, full: extra * MICROS_PER_UNIT, rate })
}

function hybrid(identity: Identity, rule: Loose): OverlayLimit {
  const base = fixedWindowLimit(identity, rule)
  const known = Object.keys(BURST_BUCKET_OPTIONS)
  const burst = partOf(identity.rule, 'burst', { value: rule['burst'], known })
  return overlay(identity, base, level(identity, burst, 'refillPerSecond'))
}

function overlay(
  identity: Identity,
  base: OverlayLimit['base'],
  { capacity, full, rate }: Pick<MeterLimit, 'capacity' | 'full' | 'rate'>,
): OverlayLimit {
  const total = base.limit === 0 ? 0 : base.limit + capacity
  const burst: MeterLimit = { ...identity, algorithm: 'token-bucket', limit: capacity, capacity, full, rate }
  return {
    ...identity,
    algorithm: 'hybrid',
    limit: total,
    capacity: total,
    base: Object.freeze(base),
    burst: Object.freeze(burst),
  }
}

/** A level with a capacity and a rate. `rateOption`: what the algorithm calls its rate. */
function level(identity: Identity, rule: Loose, rateOption: string): Omit<MeterLimit, 'algorithm'> {
  const full = microUnits(identity.rule, 'capacity', { value: rule['capacity'], most: LARGEST_UNITS })
  const perSecond = rule[rateOption]
  if (typeof perSecond !== 'number' || !(perSecond >= SLOWEST_RATE) || perSecond > LARGEST_UNITS) {
    throw invalid(identity.rule, {
      problem: `has an unusable "${rateOption}"`,
      received: perSecond,
      expected: EXPECTED_RATE,
    })
  }
  const capacity = Math.floor(full / MICROS_PER_UNIT)
  return { ...identity, limit: capacity, capacity, full, rate: ratePerSecond(perSecond) }
}

function tokenBucket(identity: Identity, rule: Loose): MeterLimit | RolloverLimit {
  const bucket = level(identity, rule, 'refillPerSecond')
  if (!flag(identity.rule, 'rollover', rule['rollover'])) return { ...bucket, algorithm: 'token-bucket' }
  const full = microUnits(identity.rule, 'capacity', { value: rule['capacity'], most: LARGEST_ROLLOVER_UNITS })
  const capacity = Math.floor((2 * full) / MICROS_PER_UNIT)
  return { ...bucket, algorithm: 'token-bucket-rollover', capacity, full, rolloverFull: full }
}

function windowMicros(rule: Loose): number {
  return durationMicros(rule['window'], 'window')
}

function fixedWindowOf(name: string, rule: Loose): number | CalendarPeriod {
  const window = rule['window']
  if (typeof window !== 'object' || window === null) return windowMicros(rule)
  const options = partOf(name, 'window', { value: window, known: CALENDAR_OPTIONS }) as unknown as CalendarWindow
  const { calendar, timeZone = CALENDAR_DEFAULTS.timeZone, weekStart = CALENDAR_DEFAULTS.weekStart } = options
  if (!CALENDAR_PERIODS.includes(calendar)) {
    throw invalid(name, {
      problem: 'has an unknown calendar period',
      received: calendar,
      expected: `one of ${CALENDAR_PERIODS.join(', ')}`,
    })
  }
  if (!isTimeZone(timeZone)) {
    throw invalid(name, {
      problem: 'has an unknown "timeZone"',
      received: timeZone,
      expected: 'an IANA name such as "Europe/Berlin"',
    })
  }
  const firstDay = WEEKDAYS.indexOf(weekStart)
  if (firstDay < 0) {
    throw invalid(name, {
      problem: 'has an unknown "weekStart"',
      received: weekStart,
      expected: `one of ${WEEKDAYS.join(', ')}`,
    })
  }
  return Object.freeze({ period: calendar, timeZone, weekStart: firstDay })
}
