import type { Rule } from '@sluice/core'
import { compileRule, step } from '@sluice/core/internal'
import type { Algorithm, State } from '@sluice/core/store'
import { algorithmOf } from '@sluice/core/store'
import { START_MICROS } from '../../fakes/fake-clock.ts'

/**
 * A worked example: a rule and what happens step by step, as a table of text.
 *
 * `at` is the time since the start (an instant at which every window begins), `retry`, `reset` and `delay` are counted
 * from `at`, `left` is the units remaining; `-` stands for "now", or for a column that says nothing here. A cost in
 * brackets, as in `(3)`, is of a caller that is not entitled to a burst.
 */
export interface Trace {
  readonly title: string
  readonly rule: Rule
  readonly steps: string
}

const UNIT_MICROS: Readonly<Record<string, number>> = {
  us: 1,
  ms: 1000,
  s: 1_000_000,
  m: 60_000_000,
  h: 3_600_000_000,
  d: 86_400_000_000,
}

type Row = Readonly<Record<string, string>>

/** The rows of a table, by the names in its first line. */
function rowsOf(steps: string): Row[] {
  const [header = [], ...lines] = steps
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([first]) => first !== '')
  return lines.map((line) => Object.fromEntries(header.map((name, column) => [name, line[column] ?? '?'])))
}

function microsOf(text: string): number {
  if (text === '-' || text === '0') return 0
  if (text === 'never') return Number.POSITIVE_INFINITY
  const [, amount, unit] = /^([\d.]+)(us|ms|s|m|h|d)$/.exec(text) ?? []
  return Math.round(Number(amount) * UNIT_MICROS[unit ?? '']!)
}

function textOf(micros: number): string {
  if (micros === 0) return '-'
  if (micros === Number.POSITIVE_INFINITY) return 'never'
  const unit = ['d', 'h', 'm', 's', 'ms'].find((name) => micros % UNIT_MICROS[name]! === 0) ?? 'us'
  return `${micros / UNIT_MICROS[unit]!}${unit}`
}

/** The table that a trace claims, in the form in which {@link replayTrace} returns it: one string for each row. */
export function expectedTrace(trace: Trace): string[] {
  return rowsOf(trace.steps).map((row) =>
    describeRow({
      ...row,
      retry: textOf(microsOf(row['retry'] ?? '-')),
      reset: textOf(microsOf(row['reset'] ?? '-')),
      delay: textOf(microsOf(row['delay'] ?? '-')),
    }),
  )
}

/** Runs a trace and writes down what really happened, one string for each row. */
export function replayTrace(trace: Trace, algorithm?: Algorithm): string[] {
  const limit = compileRule('traced', trace.rule)[0]!
  let state: State = []
  return rowsOf(trace.steps).map((row, index) => {
    const now = START_MICROS + microsOf(row['at']!)
    const [, bracket, cost] = /^(\()?(\d+)\)?$/.exec(row['cost']!) ?? []
    const ask = { now, cost: Number(cost), entitled: bracket === undefined, holder: index + 1 }
    const { verdict, state: after } = step(algorithm ?? algorithmOf(limit), state, limit, ask)
    if (ask.cost > 0) state = after
    return describeRow({
      ...row,
      ruling: verdict.ruling,
      left: String(verdict.remaining),
      retry: textOf(verdict.retryAt - now),
      reset: textOf(verdict.resetAt - now),
      delay: textOf(verdict.delayMicros),
    })
  })
}

function describeRow({ at, cost, ruling, left, retry, reset, delay }: Row): string {
  return `at ${at} cost ${cost}: ${ruling}, ${left} left, retry ${retry}, reset ${reset}, delay ${delay}`
}
