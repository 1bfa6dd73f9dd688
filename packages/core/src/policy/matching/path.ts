import { readOddPath } from './path-readings.ts'
import { foldCase } from './path-text.ts'

/** What a character of a path asks for. */
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
 * The readings of a resource, without repetition; nearly always one. A path (it begins with `/`, or is a whole URL) is read
 * like this: the query is cut off, letters are in lower case, `%` sequences are decoded once, repeated slashes are one, `.`
 * and `..` are resolved. A resource that is no path is a name: only its case changes.
 *
 * Where servers differ in what a path means, every meaning is a reading: an encoded slash, a backslash, `;`, `#`, `.` and
 * `..`, two slashes, and letters that were encoded without need. The reading that goes furthest comes first. A path that holds
 * all of these has 71 at most, a URL whose host is odd six times as many. Time grows in proportion to length.
 *
 * A reading is a text for comparison, not a path to be sent on. `%2f` in it is an encoded slash that is part of a segment. A
 * slash at its end and an empty segment are kept where a server may keep them: what they match, whoever compares has to say,
 * because servers differ in that too.
 */
export function readPath(resource: string): readonly string[] {
  const plain = plainReading(resource)
  if (plain !== undefined) return [plain]
  if (isPath(resource)) return readOddPath(resource)
  return [...new Set([...pathsOfUrl(resource)].flatMap(readOddPath))]
}

/** The only reading of a resource that is spelled plainly, or undefined: then {@link readPath} has to look closer. */
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

/** The part of a URL before its path, when everybody sees it end in the same place. */
const PLAIN_URL_BEGIN =
  /^https?:\/\/(?:[a-z0-9._~:-]*@)?(?:[a-z0-9._~-]+|\[[0-9a-f:.]+\])(?::[0-9]*)?(?=\/|$|[?#][^/]*$)/i

/** That part in other URLs, as servers take it. */
const URL_BEGINS = [
  // Up to a slash of either kind.
  /^[^:]*:\/\/[^/\\?#]*/,
  // Up to what no host can hold.
  /^[^:]*:\/\/(?:[^/?#]*@)?[a-z0-9._~:@[\]!$&()*+,=-]*/i,
  // Any number of slashes stand before the host.
  /^[^:]*:[/\\]*[^/\\?#]*/,
  // Whatever stands before the first slash.
  /^[^:]*:\/\/[^/]*/,
]

const HTTP_BEGIN = /^https?:/i

function pathsOfUrl(url: string): ReadonlySet<string> {
  const paths = new Set(URL_BEGINS.map((begin) => asPath(url.replace(begin, ''))))
  paths.add(pathAfterPort(url))
  // Some know no other schemes: all of it is a path to them, and its first character is taken for the slash.
  if (!HTTP_BEGIN.test(url)) paths.add(`/${url.slice(1)}`)
  return paths
}

/** The path of a URL with what stands in the place of the port before it, when that is no number: some take it for a segment. */
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

/** The reading of a path without anything odd in it; undefined for others. */
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
