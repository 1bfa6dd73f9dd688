import { createHash } from 'node:crypto'

/** UTF-16 code units. PostgreSQL indexes at most 2704 bytes for all parts of a key together. */
const LONGEST_KEY = 256
const KEPT_OF_KEY = 200

/**
 * Encodes a string so that every database stores it unchanged: PostgreSQL rejects NUL, and lone surrogates become
 * replacement characters in UTF-8, which would make different strings equal. They are written as `\u0000`, and `\` as
 * `\\`. Injective; all other strings are unchanged.
 */
export function encodeText(text: string): string {
  if (text.isWellFormed() && !text.includes('\\') && !text.includes('\0')) return text
  return text.replace(UNSTORABLE, (found) => (found === '\\' ? '\\\\' : `\\u${hex(found)}`))
}

/**
 * Encodes a string used as a key: like {@link encodeText}, and short, because indexes limit the length. The end of a
 * long string is replaced by a hash of the whole, so different strings stay different. Not reversible.
 */
export function encodeKey(text: string): string {
  if (text.length <= LONGEST_KEY) return encodeText(text)
  const hash = createHash('sha256').update(text, 'utf16le').digest('base64url')
  return `${encodeText(text.slice(0, KEPT_OF_KEY))}\\h${hash}`
}

/** Reverses {@link encodeText}. */
export function decodeText(stored: string): string {
  if (!stored.includes('\\')) return stored
  return stored.replace(/\\(?:\\|u([0-9a-f]{4}))/g, (_, code: string | undefined) =>
    code === undefined ? '\\' : String.fromCharCode(Number.parseInt(code, 16)),
  )
}

// With the flag `u`, a surrogate matches only if it is unpaired.
// biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is one of the characters to escape
const UNSTORABLE = /[\\\u0000\ud800-\udfff]/gu

function hex(character: string): string {
  return character.charCodeAt(0).toString(16).padStart(4, '0')
}
