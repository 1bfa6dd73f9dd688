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
 * like this: the query is cut off, letters are in lower case, `%` sequences are decoded once, repeated slashes are one, a
 * slash at the end is dropped, `.` and `..` are resolved. A resource that is no path is a name: only its case changes.
 *
 * Where servers differ in what a path means, every meaning is a reading: an encoded slash, a backslash, `;`, `#`, `.` and
 * `..`, two slashes, and letters that were encoded without need. The reading that goes furthest comes first. A path that holds
 * all of these has 71 at most, a URL whose host is odd twice as many. Time grows in proportion to length.
 *
 * A reading is a text for comparison, not a path to be sent on. `%2f` in it is an encoded slash that is part of a segment, and
 * an empty segment is one that some servers do not drop: nothing but "everything below" matches it.
 */
export function readPath(resource: string): readonly string[] {
  const plain = plainReading(resource)
  if (plain !== undefined) return [plain]
  if (isPath(resource)) return readOddPath(resource)
  return [...new Set(pathsOfUrl(resource).flatMap(readOddPath))]
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
const PLAIN_URL_BEGIN = /^[a-z][a-z0-9+.-]*:\/\/[a-z0-9._~:@[\]-]*(?=[/?#]|$)/i

/** That part in other URLs: up to a slash of either kind, or up to what no host can hold. */
const URL_BEGINS = [/^[^:]*:\/\/[^/\\?#]*/, /^[^:]*:\/\/(?:[^/?#]*@)?[a-z0-9._~:@[\]!$&()*+,=-]*/i]

function pathsOfUrl(url: string): readonly string[] {
  return URL_BEGINS.map((begin) => asPath(url.replace(begin, '')))
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
  if (from === end && end > 1) end--
  const text = end === path.length ? path : path.slice(0, end)
  return hasCapitals ? text.toLowerCase() : text
}

/** Whether a segment is `.` or `..`. */
function isDots(path: string, from: number, end: number): boolean {
  if (path.charCodeAt(from) !== DOT_CODE) return false
  return end === from + 1 || (end === from + 2 && path.charCodeAt(from + 1) === DOT_CODE)
}
