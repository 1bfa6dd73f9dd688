import type { Stored } from '@sluice/contract'

/** Rows in aligned columns under their titles. The last column is not padded. */
export function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return 'none'
  const lines = [titles.map((title) => title.toUpperCase()), ...rows].map((row) => row.map(oneLine))
  const widths = titles.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)))
  const last = titles.length - 1
  return lines
    .map((line) =>
      line
        .map((cell, column) => (column === last ? cell : cell.padEnd(widths[column]!)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** Names and values, one per line. Skips undefined values. */
export function facts(entries: readonly (readonly [name: string, value: string | number | undefined])[]): string {
  const known = entries.filter(([, value]) => value !== undefined)
  const width = Math.max(...known.map(([name]) => name.length))
  return known.map(([name, value]) => `${name.padEnd(width)}  ${oneLine(String(value))}`).join('\n')
}

/** An instant in UTC, in whole seconds; `-` for none. */
export function instantText(ms: number | undefined): string {
  if (ms === undefined || ms === 0) return '-'
  return new Date(ms).toISOString().replace(/\.\d{3}Z$/, 'Z')
}

/** `40 ms`, `1.5 s`, `3 min`, `2 h`, `4 d`. */
export function durationText(ms: number): string {
  const units = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1000],
  ] as const
  const [name, size] = units.find(([, unitMs]) => ms >= unitMs) ?? (['ms', 1] as const)
  return `${Number((ms / size).toPrecision(3))} ${name}`
}

/** `1 rule`, `2 rules`. */
export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

function oneLine(text: string): string {
  return text.replaceAll(/[\r\n\t]+/g, ' ')
}

const LONGEST_QUOTED = 64

/** User input for a message: quoted, at most 64 characters, never an API key. */
export function quoted(text: string): string {
  if (text.includes('slk_')) return '(an API key, not shown)'
  return JSON.stringify(text.length > LONGEST_QUOTED ? `${text.slice(0, LONGEST_QUOTED)}...` : text)
}

/** A line about the entry that a put replaced; empty if there was none. `describe` returns its short form. */
export function replacedText<E>(replaced: Stored<E> | undefined, describe: (entry: E) => string): string {
  if (replaced === undefined) return ''
  const { entry, revision, changedBy } = replaced
  return `\nReplaced: ${describe(entry)} (revision ${revision}, by ${changedBy}).`
}

/** Why something failed, in one line. */
export function reasonText(error: unknown): string {
  // If all addresses of a host fail, the error has no message of its own.
  if (error instanceof AggregateError) return error.errors.map(reasonText).join('; ')
  return error instanceof Error ? error.message.split('\n')[0]! : String(error)
}
