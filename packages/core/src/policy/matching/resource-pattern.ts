import { decodeText, ENCODED_BACKSLASH, ENCODED_SEMICOLON, ENCODED_SLASH, foldCase } from './path-text.ts'

/** A parsed resource of a rule. Patterns that match the same resources are equal in every field. */
export interface ResourcePattern {
  /** `all`: everything. `name`: not a path. `path`: starts with a slash. */
  readonly kind: 'all' | 'name' | 'path'
  /** Literal segments; undefined for any one segment. A name is one segment. */
  readonly segments: readonly (string | undefined)[]
  /** Whether everything below matches too. */
  readonly hasRest: boolean
  /** The common spelling of all equal patterns; itself a valid pattern, and its own canonical spelling. */
  readonly canonical: string
}

/** Why a string is not a pattern: a sentence without a full stop that says what to write instead. */
export interface PatternProblem {
  readonly problem: string
}

/** What {@link compareSpecificity} compares. */
export interface Specific {
  readonly pattern: ResourcePattern
  /** Undefined for all. */
  readonly methods: readonly string[] | undefined
}

const ALL: ResourcePattern = { kind: 'all', segments: [], hasRest: true, canonical: '*' }

/** Name of every parameter in the canonical spelling: parameter names make no difference. */
const ANY_SEGMENT = ':any'

/** Maximum length of a pattern, in UTF-16 code units. */
const LONGEST_PATTERN = 2048

const SHOWN_LENGTH = 60

const PARAMETER = /^:[A-Za-z_][A-Za-z0-9_]*$/

/**
 * Parses a pattern: `*` for everything; `/orders`; `/orders/:id/items` with any one segment in place of `:id` (`*`
 * there means the same); `/files/*` for `/files` and everything below; or a name without a slash. Literal segments are
 * normalized like those of requests: case folded, decoded once, repeated slashes collapsed. A string with more than one
 * reading is rejected.
 */
export function parsePattern(text: string): ResourcePattern | PatternProblem {
  if (text === '') return { problem: 'it is empty; write "*" for everything' }
  if (text === '*') return ALL
  if (text.length > LONGEST_PATTERN) return { problem: `it is longer than ${LONGEST_PATTERN} characters` }
  return text.startsWith('/') ? parsePath(text) : parseName(text)
}

/** The common spelling of all patterns equal to `text`; `text` itself if it is not a pattern. */
export function canonicalPattern(text: string): string {
  const pattern = parsePattern(text)
  return 'problem' in pattern ? text : pattern.canonical
}

/**
 * Whether a pattern is written for paths with a trailing slash, as `/` and `/orders/` are. It matches the same as
 * without the slash, and declares that such a path is a separate route: the slash is not followed by an empty
 * parameter.
 */
export function ownsSlash(text: string): boolean {
  return text.startsWith('/') && text.endsWith('/')
}

/**
 * Sorts the more specific pattern first; 0 only for equal ones. Segment by segment, a literal comes before any one
 * segment, and the end before everything below; `*` comes last. Of equal patterns, one with methods comes before one
 * without, and fewer methods before more.
 */
export function compareSpecificity(one: Specific, other: Specific): number {
  return (
    compareTexts(shapeOf(one.pattern), shapeOf(other.pattern)) ||
    compareTexts(one.pattern.canonical, other.pattern.canonical) ||
    (one.methods?.length ?? Number.MAX_VALUE) - (other.methods?.length ?? Number.MAX_VALUE) ||
    compareTexts(one.methods?.join() ?? '', other.methods?.join() ?? '')
  )
}

/** Why a pattern does not match a reading of a resource (see `readPath`), in short; undefined if it does. */
export function explainPattern(text: string, reading: string): string | undefined {
  const pattern = parsePattern(text)
  if ('problem' in pattern) return `the rule has no usable resource: ${pattern.problem}`
  if (pattern.kind === 'all') return undefined
  if (pattern.kind === 'name') {
    return reading === pattern.segments[0]
      ? undefined
      : `the resource is ${quoted(reading)}, the rule has ${quoted(text)}`
  }
  if (!reading.startsWith('/')) return `the resource ${quoted(reading)} is a name, the rule has a path`
  const given = reading.slice(1).split('/')
  if (given.at(-1) !== '') return explainSegments(pattern, given)
  // The trailing slash makes no difference, or it is followed by a match of an empty segment.
  const reason = explainSegments(pattern, given.slice(0, -1))
  return reason === undefined || explainSegments(pattern, given) === undefined ? undefined : reason
}

function explainSegments({ segments, hasRest }: ResourcePattern, given: readonly string[]): string | undefined {
  for (const [index, expected] of segments.entries()) {
    const segment = given[index]
    const place = `segment ${index + 1}`
    const wanted = expected === undefined ? 'one of any name' : quoted(expected)
    if (segment === undefined) return `${place} is missing, the rule has ${wanted}`
    if (expected === undefined || segment === expected) continue
    return `${place} is ${segment === '' ? 'empty' : quoted(segment)}, the rule has ${wanted}`
  }
  const further = given[segments.length]
  if (hasRest || further === undefined) return undefined
  return `segment ${segments.length + 1} is ${further === '' ? 'empty' : quoted(further)}, the rule ends before it`
}

/** A string on one line, truncated if it is long. */
function quoted(text: string): string {
  return text.length > SHOWN_LENGTH ? `${JSON.stringify(text.slice(0, SHOWN_LENGTH))}...` : JSON.stringify(text)
}

function parseName(text: string): ResourcePattern | PatternProblem {
  if (text.includes('/')) return { problem: 'it has a slash and does not begin with one; write "/" first' }
  if (text.includes('*')) return { problem: 'a "*" stands inside a name; write "*" alone for everything' }
  if (text.startsWith(':')) return { problem: 'a parameter is a segment of a path; write "/" first' }
  const name = foldCase(text)
  return { kind: 'name', segments: [name], hasRest: false, canonical: name }
}

function parsePath(text: string): ResourcePattern | PatternProblem {
  if (/[?#]/.test(text)) return { problem: 'it has a query or a fragment; only paths are matched' }
  const parts = text.split('/').filter((part) => part !== '')
  const hasRest = parts.at(-1) === '*'
  const segments: (string | undefined)[] = []
  for (const part of hasRest ? parts.slice(0, -1) : parts) {
    const problem = problemOf(part)
    if (problem !== undefined) return { problem: `the segment ${quoted(part)} ${problem}` }
    segments.push(part === '*' || part.startsWith(':') ? undefined : literalOf(part))
  }
  return { kind: 'path', segments, hasRest, canonical: canonicalOf(segments, hasRest) }
}

/** What is wrong with a segment. */
function problemOf(part: string): string | undefined {
  if (part === '*') return undefined
  if (part.includes('**')) return 'has "**"; write "/*" at the end for everything below'
  if (part.includes('*')) return 'has a "*" inside; it can only be a whole segment (write %2a for the character)'
  if (part.startsWith(':')) {
    return PARAMETER.test(part) ? undefined : 'is no parameter; write ":" and a name of letters, digits and "_"'
  }
  if (/[{}]/.test(part)) return 'has a brace; write ":name" for a parameter (%7b and %7d for the characters)'
  if (part.includes(';')) return 'has parameters after a ";"; leave them out (write %3b for the character)'
  if (part.includes('\\')) return 'has a backslash; write "/" between segments'
  const text = literalOf(part)
  if (text.includes(ENCODED_SLASH) || text.includes(ENCODED_BACKSLASH)) return 'has an encoded slash or backslash'
  if (text === '.' || text === '..') return 'leads elsewhere; write the path it leads to'
  return undefined
}

function literalOf(part: string): string {
  return foldCase(decodeText(part, 'all')).replaceAll(ENCODED_SEMICOLON, ';')
}

function canonicalOf(segments: readonly (string | undefined)[], hasRest: boolean): string {
  const parts = segments.map((segment) => (segment === undefined ? ANY_SEGMENT : encodedLiteral(segment)))
  return `/${[...parts, ...(hasRest ? ['*'] : [])].join('/')}`
}

/** A literal, escaped so that parsing it as a pattern returns it. */
function encodedLiteral(literal: string): string {
  return literal.replace(/^:|[%?#;\\*{}]/g, (character) => `%${character.charCodeAt(0).toString(16)}`)
}

/** The kinds of the segments, encoded so that more specific patterns sort first. */
function shapeOf({ kind, segments, hasRest }: ResourcePattern): string {
  if (kind === 'all') return 'z'
  return segments.map((segment) => (segment === undefined ? 'b' : 'a')).join('') + (hasRest ? 'd' : 'c')
}

function compareTexts(one: string, other: string): number {
  if (one === other) return 0
  return one < other ? -1 : 1
}

/** Number of resources whose canonical form is cached: a million overrides name the same few. */
const MOST_REMEMBERED = 16_384

/** Returns the canonical spelling of patterns, with a cache. For one thread. */
export class PatternSpellings {
  readonly #canonical = new Map<string, string>()

  /** The common spelling of all equal patterns; the string itself if it is not a pattern. */
  canonical(pattern: string): string {
    const known = this.#canonical.get(pattern)
    if (known !== undefined) return known
    const canonical = canonicalPattern(pattern)
    if (this.#canonical.size >= MOST_REMEMBERED) this.#canonical.clear()
    this.#canonical.set(pattern, canonical)
    return canonical
  }
}
