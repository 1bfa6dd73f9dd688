import { IpAddress } from '@sluice/core/internal'

/** Maximum number of hops read, from the right. */
export const MOST_HOPS = 50

/** Maximum length of the header read, in UTF-16 code units, from the right. */
const LONGEST_LIST = 8192

const COMMA = 0x2c
const QUOTE = 0x22
const BACKSLASH = 0x5c
const BLANK = 0x20
const TAB = 0x09

const HIGHEST_PORT = 65_535
const PORT = /^:\d{1,5}$/
/** RFC 7239 allows an obfuscated port. */
const HIDDEN_PORT = /^:_[\w.-]+$/

/** One `name=value` of a `Forwarded` element, quoted or not, up to the semicolon or the end. */
const PAIR = /[ \t]*([!#$%&'*+.^_`|~\w-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s",;]*))[ \t]*(?:;|$)/y

/** Syntax of the forwarding header. */
export type HopSyntax = 'x-forwarded-for' | 'forwarded'

/** Value of a header, see `HttpRequest.header`. */
export type HeaderLines = string | readonly string[] | undefined

/**
 * Hops of a forwarding header, read from the right. Each proxy appends to the right, so nothing that a client writes
 * changes how the entry of a proxy is read. Reads at most 50 entries and 8,192 characters.
 */
export class ForwardedHops {
  readonly #text: string
  readonly #isRfc7239: boolean
  readonly #isCut: boolean
  /** End of the unread part; -1 when everything was read. */
  #end: number
  #left = MOST_HOPS

  constructor(lines: HeaderLines, syntax: HopSyntax) {
    const whole = joinLines(lines)
    this.#isCut = whole.length > LONGEST_LIST
    this.#text = this.#isCut ? whole.slice(-LONGEST_LIST) : whole
    this.#isRfc7239 = syntax === 'forwarded'
    this.#end = lines === undefined ? -1 : this.#text.length
  }

  /**
   * Address of the next hop to the left. Null if the entry is not an address or is obfuscated: entries further left
   * must not be trusted. Undefined at the end, or beyond the maximum.
   */
  next(): IpAddress | null | undefined {
    if (this.#end < 0 || this.#left === 0) return undefined
    this.#left--
    const start = this.#isRfc7239 ? elementStart(this.#text, this.#end) : this.#text.lastIndexOf(',', this.#end - 1) + 1
    // The first entry of a string that was cut may have lost its beginning.
    if (start < 0 || this.#end === 0 || (start === 0 && this.#isCut)) return this.#stop()
    const entry = trimBlanks(this.#text.slice(start, this.#end))
    this.#end = start - 1
    return this.#isRfc7239 ? readElement(entry) : readHop(entry, PORT)
  }

  #stop(): null {
    this.#end = -1
    return null
  }
}

/** Address in a header with a single value. Undefined if it is missing, invalid or repeated. */
export function singleAddress(lines: HeaderLines): IpAddress | undefined {
  if (lines === undefined) return undefined
  const text = joinLines(lines)
  if (text.length > LONGEST_LIST) return undefined
  return readHop(trimBlanks(text), PORT) ?? undefined
}

/** Trims spaces and tabs. A regular expression would take quadratic time for blanks in the middle. */
export function trimBlanks(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && isBlank(text.charCodeAt(start))) start++
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--
  return text.slice(start, end)
}

function isBlank(unit: number): boolean {
  return unit === BLANK || unit === TAB
}

function joinLines(lines: HeaderLines): string {
  if (typeof lines === 'string') return lines
  return lines === undefined ? '' : lines.join(',')
}

/** Parses `1.2.3.4`, `1.2.3.4:80`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:80`. Null otherwise. */
function readHop(text: string, port: RegExp): IpAddress | null {
  const address = new IpAddress()
  if (text.startsWith('[')) {
    const close = text.indexOf(']')
    const inner = text.slice(1, close)
    if (close < 0 || !inner.includes(':') || !isPort(text.slice(close + 1), port)) return null
    return address.read(inner) ? address : null
  }
  const colon = text.indexOf(':')
  // One colon is that of a port; an IPv6 address has two at least, and no port unless it stands in brackets.
  if (colon < 0 || text.includes(':', colon + 1)) return address.read(text) ? address : null
  return isPort(text.slice(colon), port) && address.read(text.slice(0, colon)) ? address : null
}

function isPort(text: string, port: RegExp): boolean {
  if (text === '') return true
  if (PORT.test(text)) return Number(text.slice(1)) <= HIGHEST_PORT
  return port.test(text)
}

/** Start of the `Forwarded` element that ends at `end`; -1 if a quote is unbalanced. */
function elementStart(text: string, end: number): number {
  let isQuoted = false
  for (let at = end - 1; at >= 0; at--) {
    const unit = text.charCodeAt(at)
    if (unit === QUOTE && !(isQuoted && isEscaped(text, at))) isQuoted = !isQuoted
    else if (unit === COMMA && !isQuoted) return at + 1
  }
  return isQuoted ? -1 : 0
}

function isEscaped(text: string, at: number): boolean {
  let before = at - 1
  while (before >= 0 && text.charCodeAt(before) === BACKSLASH) before--
  return (at - before) % 2 === 0
}

/** Address of `for` in a `Forwarded` element (RFC 7239). Null if there is none or more than one. */
function readElement(element: string): IpAddress | null {
  let node: string | undefined
  PAIR.lastIndex = 0
  while (PAIR.lastIndex < element.length) {
    const pair = PAIR.exec(element)
    if (pair === null) return null
    if (pair[1]!.toLowerCase() !== 'for') continue
    if (node !== undefined) return null
    node = pair[2]?.replaceAll(/\\(.)/g, '$1') ?? pair[3]!
  }
  return node === undefined ? null : readHop(node, HIDDEN_PORT)
}
