import { decodeText, ENCODED_BACKSLASH, ENCODED_SEMICOLON, ENCODED_SLASH, foldCase } from './path-text.ts'

/** How a character of a path must be handled. */
const PLAIN = 0
const SLASH = 1
const CAPITAL = 2
const QUERY = 3
const ODD = 4

const SLASH_CODE = 0x2f
const DOT_CODE = 0x2e

const KINDS = kindsOfCharacters()

function kindsOfCharacters(): Uint8Array {
  const kinds = new Uint8Array(128).fill(PLAIN)
  kinds.fill(ODD, 0, 0x21)
  for (const odd of ['%', ';', '\\', '#', '\u007f']) kinds[odd.charCodeAt(0)] = ODD
  for (let code = 0x41; code <= 0x5a; code++) kinds[code] = CAPITAL
  kinds[SLASH_CODE] = SLASH
  kinds['?'.charCodeAt(0)] = QUERY
  return kinds
}

/**
 * The interpretations ("readings") of a resource, without duplicates; nearly always one. A path (it starts with `/`, or
 * is a whole URL) is normalized: the query is removed, letters are lower-cased, `%` sequences are decoded once,
 * repeated slashes are collapsed, `.` and `..` are resolved. Any other resource is a name: only its case changes.
 *
 * Where servers disagree about a path, every interpretation is a reading: an encoded slash, a backslash, `;`, `#`, `.`
 * and `..`, two slashes, and letters that were encoded needlessly. The most thoroughly decoded reading comes first. A
 * path with all of these has at most 71 readings, a URL with an unusual host six times as many. Time grows linearly
 * with length.
 *
 * A reading is for comparison, not for forwarding. `%2f` in it is an encoded slash within a segment. A trailing slash
 * and an empty segment are kept if a server may keep them: the matcher decides what they match, because servers differ
 * in that too.
 */
export function readPath(resource: string): readonly string[] {
  const plain = plainReading(resource)
  if (plain !== undefined) return [plain]
  if (isPath(resource)) return readOddPath(resource)
  return [...new Set([...pathsOfUrl(resource)].flatMap(readOddPath))]
}

/** The only reading of a plainly spelled resource; undefined if {@link readPath} must inspect it. */
export function plainReading(resource: string): string | undefined {
  if (isPath(resource)) return plainPath(resource)
  if (!URL_BEGIN.test(resource)) return foldCase(resource)
  const begin = PLAIN_URL_BEGIN.exec(resource)
  return begin === null ? undefined : plainPath(asPath(resource.slice(begin[0].length)))
}

function isPath(resource: string): boolean {
  return resource.charCodeAt(0) === SLASH_CODE
}

const URL_BEGIN = /^[a-z][a-z0-9+.-]*:\/\//i

/** The part of a URL before its path, if all servers agree where it ends. */
const PLAIN_URL_BEGIN =
  /^https?:\/\/(?:[a-zA-Z0-9._~:-]*@)?(?:[a-zA-Z0-9._~-]+|\[[0-9a-fA-F:.]+\])(?::[0-9]*)?(?=\/|$|[?#][^/]*$)/

/** That part of other URLs, as different servers interpret it. */
const URL_BEGINS = [
  // Up to a slash or backslash.
  /^[^:]*:\/\/[^/\\?#]*/,
  // Up to the first character that is invalid in a host.
  /^[^:]*:\/\/(?:[^/?#]*@)?[a-z0-9._~:@[\]!$&()*+,=-]*/i,
  // Any number of slashes before the host.
  /^[^:]*:[/\\]*[^/\\?#]*/,
  // Everything before the first slash.
  /^[^:]*:\/\/[^/]*/,
]

const HTTP_BEGIN = /^https?:/

function pathsOfUrl(url: string): ReadonlySet<string> {
  const paths = new Set(URL_BEGINS.map((begin) => asPath(url.replace(begin, ''))))
  paths.add(pathAfterPort(url))
  // Some, such as Fastify 4, know only these schemes, in lower case: anything else is a path to them, and its first
  // character is taken for the slash.
  if (!HTTP_BEGIN.test(url)) paths.add(`/${url.slice(1)}`)
  return paths
}

/**
 * The path of a URL, preceded by what is in place of the port if that is not a number: some servers take it for a
 * segment.
 */
function pathAfterPort(url: string): string {
  const [begin = ''] = URL_BEGINS[0]!.exec(url) ?? []
  const host = begin.slice(Math.max(begin.indexOf('://') + 3, begin.lastIndexOf('@') + 1)).replace(/:[0-9]*$/, '')
  const isBracketed = host.startsWith('[') && host.endsWith(']')
  const colon = isBracketed ? -1 : host.indexOf(':')
  const path = asPath(url.slice(begin.length))
  return colon < 0 ? path : `/${host.slice(colon)}${path}`
}

function asPath(text: string): string {
  return isPath(text) ? text : `/${text}`
}

/** The reading of an ordinary path; undefined for others. */
function plainPath(path: string): string | undefined {
  let end = path.length
  let from = 1
  let hasCapitals = false
  for (let at = 1; at < end; at++) {
    const code = path.charCodeAt(at)
    const kind = code < 128 ? KINDS[code] : ODD
    if (kind === PLAIN) continue
    if (kind === ODD) return undefined
    if (kind === CAPITAL) hasCapitals = true
    else if (kind === QUERY) end = at
    else if (at === from || isDots(path, from, at)) return undefined
    else from = at + 1
  }
  if (isDots(path, from, end)) return undefined
  const text = end === path.length ? path : path.slice(0, end)
  return hasCapitals ? text.toLowerCase() : text
}

/** Whether a segment is `.` or `..`. */
function isDots(path: string, from: number, end: number): boolean {
  if (path.charCodeAt(from) !== DOT_CODE) return false
  return end === from + 1 || (end === from + 2 && path.charCodeAt(from + 1) === DOT_CODE)
}

// Servers disagree about a path with an encoded slash, a backslash, `;`, `.` or `..`, or empty segments. Each reading
// here is that of servers in use; differences are combined, because proxies and frameworks are. Without any of these
// characters, all combinations give the same reading.

/** How a server interprets the parts of a path on which servers disagree. */
interface Manner {
  /** Whether `%2f`, and `%5c` if backslashes separate, separate segments. */
  readonly encodedSeparates: boolean
  readonly backslashSeparates: boolean
  /** Whether `;` and the rest of a segment are dropped, before or after decoding; else they are text. */
  readonly params: 'dropped-before' | 'dropped-after' | 'text'
}

const SPLIT_FIRST: Manner = { encodedSeparates: false, backslashSeparates: false, params: 'text' }
const DECODED_FIRST: Manner = { ...SPLIT_FIRST, encodedSeparates: true }

const PARAMS = /;[^/]*/g
const SLASHES = /\/{2,}/g
const DOTS = /\/\.\.?(?:\/|$)/

/** Features of a decoded path on which interpretations differ. */
const READ_DIFFERENTLY = new RegExp(`[\\\\;${ENCODED_SLASH}${ENCODED_BACKSLASH}${ENCODED_SEMICOLON}]|//|${DOTS.source}`)

/** The readings of a path that starts with a slash, in any spelling; see `readPath`. */
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
  // Clients never send a fragment. Servers drop one, or treat it as text.
  if (hash >= 0) addWithFragment(decoded(whole), readings)
  addHostless(target, readings)
  // Some compare before they decode.
  readings.add(asItStands)
  return [...readings]
}

function decoded(target: string): string {
  return foldCase(decodeText(target, 'all'))
}

/** Every combination that makes a difference for this text. */
function mannersFor(text: string): readonly Manner[] {
  const hasBackslash = text.includes('\\') || text.includes(ENCODED_BACKSLASH)
  const hasEncoded = text.includes(ENCODED_SLASH) || text.includes(ENCODED_BACKSLASH)
  const hasParams = text.includes(';') || text.includes(ENCODED_SEMICOLON)
  const manners: Manner[] = []
  for (const encodedSeparates of hasEncoded ? [true, false] : [true]) {
    for (const backslashSeparates of hasBackslash ? [true, false] : [true]) {
      const manner: Manner = { encodedSeparates, backslashSeparates, params: 'text' }
      // Servers that drop parameters after decoding have decoded slashes too.
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

/** Some treat everything after the first `;` as a query. */
function addWithoutRest(text: string, readings: Set<string>): void {
  const semicolon = text.indexOf(';')
  if (semicolon >= 0) addReadings(applied(text.slice(0, semicolon), SPLIT_FIRST), readings)
}

function addWithFragment(text: string, readings: Set<string>): void {
  addReadings(applied(text, DECODED_FIRST), readings)
  addReadings(applied(text, SPLIT_FIRST), readings)
}

/** Text after two slashes is the host for servers that resolve the path as a relative URL. */
function addHostless(target: string, readings: Set<string>): void {
  const host = /^[/\\]{2,}[^/\\]*/.exec(target)
  if (host === null) return
  const text = decoded(target.slice(host[0].length) || '/')
  addReadings(applied(text, { ...SPLIT_FIRST, backslashSeparates: true }), readings)
}

/**
 * The readings of a string with slashes as its only separators: with `.` and `..` resolved or not, empty segments
 * dropped or not.
 */
function addReadings(text: string, readings: Set<string>): void {
  const merged = withoutEmpty(text)
  const hasDots = DOTS.test(text)
  if (hasDots) readings.add(resolved(merged))
  readings.add(merged)
  if (merged === text) return
  readings.add(text)
  if (!hasDots) return
  // `..` may also remove an empty segment.
  const otherwise = resolved(text)
  readings.add(otherwise)
  readings.add(withoutEmpty(otherwise))
}

/** A path without `.` and `..`, never above the root. If it ended in one of them, it ends in a slash. */
function resolved(path: string): string {
  const kept: string[] = []
  const segments = path.split('/')
  // There is nothing before the first slash.
  for (let index = 1; index < segments.length; index++) {
    const segment = segments[index]!
    if (segment === '..') kept.pop()
    else if (segment !== '.') kept.push(segment)
  }
  const last = segments.at(-1)
  if (last === '.' || last === '..') kept.push('')
  return `/${kept.join('/')}`
}

/** A path without empty segments; a trailing slash stays. */
function withoutEmpty(path: string): string {
  return path.replace(SLASHES, '/')
}
