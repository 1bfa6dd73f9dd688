import type { FieldProblem } from '@sluice/contract'

/** Members that an object of a body may have: many times what any form has names for, or callers have names of their own. */
const MOST_MEMBERS = 1000

/** Entries that a list may have: more than the rules that fit into the largest body. */
const MOST_ENTRIES = 100_000

/** Levels of lists and objects in each other; deeper it is refused in any case, by whoever compares it with its form. */
export const DEEPEST = 64

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

const QUOTE = 0x22
const BACKSLASH = 0x5c
const LIST_OPENS = 0x5b
const LIST_CLOSES = 0x5d
const OBJECT_OPENS = 0x7b
const OBJECT_CLOSES = 0x7d

/**
 * Whether the text of a body nests lists and objects deeper than any form does. Looks at bytes, because to parse such a text takes
 * tens of times as long as to read it. What is no JSON may get either answer.
 */
export function isTooDeep(text: Uint8Array): boolean {
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const byte = text[at]
    if (byte === QUOTE) at = endOfString(text, at)
    else if (byte === LIST_OPENS || byte === OBJECT_OPENS) depth++
    else if (byte === LIST_CLOSES || byte === OBJECT_CLOSES) depth--
    if (depth > DEEPEST) return true
  }
  return false
}

/** Where a string ends that begins at `start`; the end of the text when it does not. */
function endOfString(text: Uint8Array, start: number): number {
  let at = start + 1
  while (at < text.length && text[at] !== QUOTE) at += text[at] === BACKSLASH ? 2 : 1
  return at
}

/** A name as JSON pointers have it. */
function escaped(name: string | number): string {
  return String(name).replaceAll('~', '~0').replaceAll('/', '~1')
}
