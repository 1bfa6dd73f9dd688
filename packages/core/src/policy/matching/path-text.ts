// Decoded text contains no control characters, so these represent encoded characters until it is decided how to
// interpret them.
export const ENCODED_SLASH = '\u0001'
export const ENCODED_BACKSLASH = '\u0002'
export const ENCODED_SEMICOLON = '\u0003'

const PERCENT = 0x25

/** Characters that are valid in a path, and only encoded deliberately. */
const NEED_NO_CODE = /^[A-Za-z0-9\-._~!$&'()*+,;=:@/]$/

const NOT_ASCII = /[\u0080-\uffff]/

/** Folds letter case, independent of the locale. `ß` equals `SS`, and `ς` equals `Σ`. */
export function foldCase(text: string): string {
  return NOT_ASCII.test(text) ? text.toLowerCase().toUpperCase().toLowerCase() : text.toLowerCase()
}

/** How much {@link decodeText} decodes. */
export type Decoding =
  /** Everything; separators become {@link ENCODED_SLASH} and its relatives. */
  | 'all'
  /** Only what must be encoded: `%20`, but not `%61` for `a`. */
  | 'needed'

/**
 * Decodes `%` sequences once: `%252f` becomes `%2f`. Invalid UTF-8 stays as it is. Control characters stay encoded, and
 * unencoded ones become encoded, because they end or split strings elsewhere.
 */
export function decodeText(text: string, decoding: Decoding): string {
  let decoded = ''
  let taken = 0
  let at = 0
  while (at < text.length) {
    const code = text.charCodeAt(at)
    const encoded = code === PERCENT ? encodedAt(text, at) : -1
    const end = encoded < 0 ? at + 1 : at + 3 * bytesOf(encoded)
    const meant = encoded < 0 ? bareMeaningOf(code) : meaningOf(encoded, decoding)
    if (meant !== undefined) {
      decoded += text.slice(taken, at) + meant
      taken = end
    }
    at = end
  }
  return taken === 0 ? text : decoded + text.slice(taken)
}

/** The text for an encoded character; undefined if it stays encoded. */
function meaningOf(codePoint: number, decoding: Decoding): string | undefined {
  if (isControl(codePoint)) return undefined
  const character = String.fromCodePoint(codePoint)
  if (decoding === 'needed') return NEED_NO_CODE.test(character) ? undefined : character
  if (character === '/') return ENCODED_SLASH
  if (character === '\\') return ENCODED_BACKSLASH
  return character === ';' ? ENCODED_SEMICOLON : character
}

/** The text for an unencoded character; undefined if it stays as it is. */
function bareMeaningOf(code: number): string | undefined {
  return isControl(code) ? encodeURIComponent(String.fromCharCode(code)) : undefined
}

function isControl(codePoint: number): boolean {
  return codePoint < 0x20 || (codePoint >= 0x7f && codePoint < 0xa0)
}

/** The code point encoded at a position, or -1 if there is no well-formed sequence. */
function encodedAt(text: string, at: number): number {
  const lead = byteAt(text, at)
  if (lead < 0x80) return lead
  const count = countByLead(lead)
  if (count === 0) return -1
  let codePoint = lead & (0x7f >> count)
  for (let index = 1; index < count; index++) {
    const byte = byteAt(text, at + 3 * index)
    if ((byte & ~0x3f) !== 0x80) return -1
    codePoint = (codePoint << 6) | (byte & 0x3f)
  }
  const isSurrogate = codePoint >= 0xd800 && codePoint <= 0xdfff
  // Overlong: an old way to hide a slash.
  return bytesOf(codePoint) !== count || isSurrogate || codePoint > 0x10_ff_ff ? -1 : codePoint
}

function countByLead(lead: number): number {
  if (lead < 0xc2 || lead > 0xf4) return 0
  if (lead < 0xe0) return 2
  return lead < 0xf0 ? 3 : 4
}

/** Length of a code point in UTF-8 bytes. */
function bytesOf(codePoint: number): number {
  if (codePoint < 0x80) return 1
  if (codePoint < 0x800) return 2
  return codePoint < 0x1_00_00 ? 3 : 4
}

/** The byte of `%xx` at a position, or -1. */
function byteAt(text: string, at: number): number {
  if (text.charCodeAt(at) !== PERCENT) return -1
  const high = digitOf(text.charCodeAt(at + 1))
  const low = digitOf(text.charCodeAt(at + 2))
  return high < 0 || low < 0 ? -1 : high * 16 + low
}

function digitOf(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30
  const letter = code | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}
