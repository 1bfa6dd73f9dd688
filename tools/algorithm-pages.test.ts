// The tables of traces in docs/algorithms say what really happens: each is played again. A table of a trace follows a
// comment with its rule, `<!-- trace { ...rule } -->`. Times count from an instant at which every window begins.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { repositoryFiles } from './repository-files.ts'
import { repositoryRoot } from './workspace.ts'

/** The parts of `@sluice/core` that are needed here. */
interface Core {
  readonly createLimiter: (options: object) => { check: Check; peek: Check }
}

type Check = (key: string, options: { cost: number; entitled: boolean }) => Answer

interface Answer {
  readonly allowed: boolean
  readonly reason: string
  readonly remaining: number
  readonly retryAfterMs: number
  readonly resetAt: number
  readonly delayMs: number
}

type Row = Readonly<Record<string, string>>

interface Trace {
  readonly place: string
  readonly rule: object
  readonly rows: readonly Row[]
}

const START_MS = Date.UTC(2030, 0, 1)
const UNIT_MS: Readonly<Record<string, number>> = { us: 0.001, ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

function cellsOf(line: string): string[] {
  return line
    .slice(1, -1)
    .split('|')
    .map((cell) => cell.trim())
}

function tracesOf(path: string): Trace[] {
  const text = readFileSync(join(repositoryRoot, path), 'utf8')
  return [...text.matchAll(/<!-- trace (\{.*\}) -->\n\n((?:\|.*\|\n)+)/g)].map((match) => {
    const [header = '', , ...lines] = match[2]!.trim().split('\n')
    const names = cellsOf(header)
    return {
      place: `${path}:${text.slice(0, match.index).split('\n').length}`,
      rule: JSON.parse(match[1]!) as object,
      rows: lines.map((line) => Object.fromEntries(cellsOf(line).map((cell, column) => [names[column]!, cell]))),
    }
  })
}

/** Milliseconds of a cell such as `499,999 us` or `1 s`; `-` says nothing. */
function msOf(cell: string): number | undefined {
  if (cell === '-') return undefined
  if (cell === '0') return 0
  if (cell === 'never') return Number.POSITIVE_INFINITY
  const [, amount = '', unit = ''] = /^([\d,.]+) (us|ms|s|m|h|d)$/.exec(cell) ?? []
  return Number(amount.replaceAll(',', '')) * (UNIT_MS[unit] ?? Number.NaN)
}

/** What a row claims, as far as it does, with times as a decision tells them: in whole milliseconds, rounded up. */
function claimOf(row: Row): Row {
  const { at = '', cost = '', answer = '', remaining = '-' } = row
  const times = ['retry after', 'reset after', 'delay'].map((name) => [name, msOf(row[name] ?? '-')] as const)
  const claimed = times.flatMap(([name, ms]) => (ms === undefined ? [] : [[name, String(Math.ceil(ms))]]))
  return { at, cost, answer, ...(remaining === '-' ? {} : { remaining }), ...Object.fromEntries(claimed) }
}

async function play({ rule, rows }: Trace): Promise<Row[]> {
  const { createLimiter } = (await import(join(repositoryRoot, 'packages/core/src/index.ts'))) as Core
  let nowMs = START_MS
  const limiter = createLimiter({ ...rule, clock: { nowMicros: () => Math.round(nowMs * 1000) } })
  return rows.map((row) => {
    const claim = claimOf(row)
    nowMs = START_MS + msOf(row['at'] ?? '')!
    const [cost = '', entitled] = (row['cost'] ?? '').split(', ')
    const answer = limiter.check('traced', { cost: Number(cost), entitled: entitled !== 'not entitled' })
    const told: Row = {
      answer: answer.reason,
      remaining: String(answer.remaining),
      'retry after': String(answer.retryAfterMs),
      'reset after': String(Math.ceil(answer.resetAt - nowMs)),
      delay: String(answer.delayMs),
    }
    return Object.fromEntries(Object.keys(claim).map((name) => [name, told[name] ?? claim[name]!]))
  })
}

describe('the traces of the algorithm pages', () => {
  const pages = repositoryFiles(repositoryRoot, 'docs/algorithms').filter((path) => !path.endsWith('README.md'))
  const traces = pages.flatMap(tracesOf)

  it.each(pages.map((path) => [path]))('%s has one', (path) => {
    expect(traces.some(({ place }) => place.startsWith(path))).toBe(true)
  })

  it.each(traces.map((trace) => [trace.place, trace] as const))('%s is what happens', async (_place, trace) => {
    expect(await play(trace)).toEqual(trace.rows.map(claimOf))
  })
})
