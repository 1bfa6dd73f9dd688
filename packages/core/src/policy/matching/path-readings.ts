import { decodeText, ENCODED_BACKSLASH, ENCODED_SEMICOLON, ENCODED_SLASH, foldCase } from './path-text.ts'

// Servers do not agree on what a path means when it holds an encoded slash, a backslash, `;`, `.` or `..`, or empty segments.
// Each reading here is one that servers in use have; the ways in which they differ are combined, because proxies and
// frameworks are. Where none of those characters stands in a path, all combinations are the same reading.

/** How a server takes the parts of a path that are not taken alike everywhere. */
interface Manner {
  /** Whether `%2f`, and `%5c` where a backslash is one, separate segments. */
  readonly encodedSeparates: boolean
  readonly backslashSeparates: boolean
  /** Whether `;` and what follows it in a segment is dropped, before decoding or after it; else it is text. */
  readonly params: 'dropped-before' | 'dropped-after' | 'text'
}

const SPLIT_FIRST: Manner = { encodedSeparates: false, backslashSeparates: false, params: 'text' }
const DECODED_FIRST: Manner = { ...SPLIT_FIRST, encodedSeparates: true }

const PARAMS = /;[^/]*/g
const SLASHES = /\/{2,}/g
const DOTS = /\/\.\.?(?:\/|$)/

/** What makes the ways differ, in a decoded path. */
const READ_DIFFERENTLY = new RegExp(`[\\\\;${ENCODED_SLASH}${ENCODED_BACKSLASH}${ENCODED_SEMICOLON}]|//|${DOTS.source}`)

/** The readings of a path that begins with a slash and may be spelled in any way; see `readPath`. */
export function readOddPath(path: string): readonly string[] {
  const query = path.indexOf('?')
  const whole = query < 0 ? path : path.slice(0, query)
  const hash = whole.indexOf('#')
  const target = hash < 0 ? whole : whole.slice(0, hash)
  const text = decoded(target)
  const asItStands = foldCase(decodeText(target, 'needed'))
  if (hash < 0 && !READ_DIFFERENTLY.test(text)) return text === asItStands ? [text] : [text, asItStands]
  const readings = new Set<string>()
  for (const manner of mannersFor(text)) addReadings(applied(text, manner), readings)
  addWithoutRest(text, readings)
  // A fragment is never sent; where one is, it is dropped, or taken for text.
  if (hash >= 0) addWithFragment(decoded(whole), readings)
  addHostless(target, readings)
  // Some compare before they decode.
  readings.add(asItStands)
  return [...readings]
}

function decoded(target: string): string {
  return foldCase(decodeText(target, 'all'))
}

/** Every combination that can make a difference for this text. */
function mannersFor(text: string): readonly Manner[] {
  const hasBackslash = text.includes('\\') || text.includes(ENCODED_BACKSLASH)
  const hasEncoded = text.includes(ENCODED_SLASH) || text.includes(ENCODED_BACKSLASH)
  const hasParams = text.includes(';') || text.includes(ENCODED_SEMICOLON)
  const manners: Manner[] = []
  for (const encodedSeparates of hasEncoded ? [true, false] : [true]) {
    for (const backslashSeparates of hasBackslash ? [true, false] : [true]) {
      const manner: Manner = { encodedSeparates, backslashSeparates, params: 'text' }
      // Who drops parameters after decoding has decoded slashes too.
      if (hasParams && encodedSeparates) manners.push({ ...manner, params: 'dropped-after' })
      if (hasParams) manners.push({ ...manner, params: 'dropped-before' })
      manners.push(manner)
    }
  }
  return manners
}

/** The text with all separators written as slashes. */
function applied(text: string, { encodedSeparates, backslashSeparates, params }: Manner): string {
  const before = params === 'dropped-before' ? text.replace(PARAMS, '') : text
  const separated = before
    .replaceAll('\\', backslashSeparates ? '/' : '\\')
    .replaceAll(ENCODED_BACKSLASH, encodedSeparates && backslashSeparates ? '/' : '\\')
    .replaceAll(ENCODED_SLASH, encodedSeparates ? '/' : '%2f')
    .replaceAll(ENCODED_SEMICOLON, ';')
  return params === 'dropped-after' ? separated.replace(PARAMS, '') : separated
}

/** Some take everything after the first `;` for a query. */
function addWithoutRest(text: string, readings: Set<string>): void {
  const semicolon = text.indexOf(';')
  if (semicolon >= 0) addReadings(applied(text.slice(0, semicolon), SPLIT_FIRST), readings)
}

function addWithFragment(text: string, readings: Set<string>): void {
  addReadings(applied(text, DECODED_FIRST), readings)
  addReadings(applied(text, SPLIT_FIRST), readings)
}

/** What stands after two slashes is the host for those who resolve the path as a relative URL. */
function addHostless(target: string, readings: Set<string>): void {
  const host = /^[/\\]{2,}[^/\\]*/.exec(target)
  if (host === null) return
  const text = decoded(target.slice(host[0].length) || '/')
  addReadings(applied(text, { ...SPLIT_FIRST, backslashSeparates: true }), readings)
}

/** The readings of a text in which only slashes separate: with `.` and `..` resolved or not, empty segments dropped or not. */
function addReadings(text: string, readings: Set<string>): void {
  const merged = withoutEmpty(text)
  const hasDots = DOTS.test(text)
  if (hasDots) readings.add(resolved(merged))
  readings.add(merged)
  if (merged === text) return
  readings.add(text)
  if (!hasDots) return
  // `..` may also take back an empty segment.
  const otherwise = resolved(text)
  readings.add(otherwise)
  readings.add(withoutEmpty(otherwise))
}

/** A path without `.` and `..`, never above the root. One that ends in them leads to a path that ends in a slash. */
function resolved(path: string): string {
  const kept: string[] = []
  const segments = path.split('/')
  // Nothing stands before the first slash.
  for (let index = 1; index < segments.length; index++) {
    const segment = segments[index]!
    if (segment === '..') kept.pop()
    else if (segment !== '.') kept.push(segment)
  }
  const last = segments.at(-1)
  if (last === '.' || last === '..') kept.push('')
  return `/${kept.join('/')}`
}

/** A path without empty segments; it keeps the slash at its end. */
function withoutEmpty(path: string): string {
  return path.replace(SLASHES, '/')
}
