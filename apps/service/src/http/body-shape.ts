import type { FieldProblem } from '@sluice/contract'

/** Members that an object of a body may have: many times what any form has names for, or callers have names of their own. */
const MOST_MEMBERS = 1000

/** Entries that a list may have: more than the rules that fit into the largest body. */
const MOST_ENTRIES = 100_000

/** Deeper it is refused in any case, by whoever compares it with its form. */
const DEEPEST = 64

/**
 * The first part of a body that is larger than any form has room for; undefined when there is none. To compare a body with its form is
 * to find words for everything that is wrong with it: in a body that is made for it that takes hundreds of times as long as
 * this.
 */
export function oversizedPart(body: unknown): FieldProblem | undefined {
  return oversized(body, '', 0)
}

function oversized(value: unknown, path: string, depth: number): FieldProblem | undefined {
  if (typeof value !== 'object' || value === null || depth > DEEPEST) return undefined
  const isList = Array.isArray(value)
  const names = isList ? undefined : Object.keys(value)
  const count = names?.length ?? (value as readonly unknown[]).length
  const [most, what] = isList ? [MOST_ENTRIES, 'a list'] : [MOST_MEMBERS, 'an object']
  if (count > most) return { path, received: `${what} of ${count}`, expected: `${what} of at most ${most}` }
  for (let index = 0; index < count; index++) {
    const name = names?.[index] ?? index
    const found = oversized((value as Readonly<Record<string | number, unknown>>)[name], '', depth + 1)
    if (found !== undefined) return { ...found, path: `${path}/${escaped(name)}${found.path}` }
  }
  return undefined
}

/** A name as JSON pointers have it. */
function escaped(name: string | number): string {
  return String(name).replaceAll('~', '~0').replaceAll('/', '~1')
}
