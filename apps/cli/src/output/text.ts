import type { Stored } from '@sluice/contract'

/** Rows of texts in columns, as wide as they need to be, under their titles. The last column is not filled up. */
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

/** Names and values, one below the other; those whose value is undefined are left out. */
export function facts(entries: readonly (readonly [name: string, value: string | number | undefined])[]): string {
  const known = entries.filter(([, value]) => value !== undefined)
  const width = Math.max(...known.map(([name]) => name.length))
  return known.map(([name, value]) => `${name.padEnd(width)}  ${oneLine(String(value))}`).join('\n')
}

/** An instant for people: in UTC, in whole seconds; `-` for none. */
export function instantText(ms: number | undefined): string {
  if (ms === undefined || ms === 0) return '-'
  return new Date(ms).toISOString().replace(/\.\d{3}Z$/, 'Z')
}

/** `1 rule`, `2 rules`. */
export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

function oneLine(text: string): string {
  return text.replaceAll(/[\r\n\t]+/g, ' ')
}

const LONGEST_SHOWN = 64

/** What was typed, for a message: quoted, not too long, and never an API key. */
export function quoted(text: string): string {
  if (text.includes('slk_')) return '(an API key, not shown)'
  return JSON.stringify(text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}...` : text)
}

/** What a put took the place of, on a line of its own; empty when nothing was there. `say` tells it in short. */
export function replacedText<E>(replaced: Stored<E> | undefined, say: (entry: E) => string): string {
  if (replaced === undefined) return ''
  const { entry, revision, changedBy } = replaced
  return `\nReplaced: ${say(entry)} (revision ${revision}, by ${changedBy}).`
}

/** The same for a part of the rule set. */
export function replacedPartText(replaced: unknown): string {
  return replaced === undefined ? '' : `\nReplaced: ${JSON.stringify(replaced)}`
}
