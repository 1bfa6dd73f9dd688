import { createHash } from 'node:crypto'

/** UTF-16 code units; PostgreSQL takes 2704 bytes in an index, for all parts of a key together. */
const LONGEST_KEY = 256
const KEPT_OF_KEY = 200

/**
 * A text in a form that every database keeps as it is: PostgreSQL has no NUL, and halves of characters become a replacement
 * character in UTF-8, which would make different texts the same. They are written as `\u0000`, and `\` as `\\`. Different
 * texts stay different; all but these are unchanged.
 */
export function encodeText(text: string): string {
  if (text.isWellFormed() && !text.includes('\\') && !text.includes('\0')) return text
  return text.replace(UNSTORABLE, (found) => (found === '\\' ? '\\\\' : `\\u${hex(found)}`))
}

/**
 * A text that rows are found by: as {@link encodeText}, and short, because indexes do not take long ones. The end of a long text
 * is replaced by a hash of the whole, so that different texts stay different. There is no way back.
 */
export function encodeKey(text: string): string {
  if (text.length <= LONGEST_KEY) return encodeText(text)
  const hash = createHash('sha256').update(text, 'utf16le').digest('base64url')
  return `${encodeText(text.slice(0, KEPT_OF_KEY))}\\h${hash}`
}

/** The text that {@link encodeText} made it from. */
export function decodeText(stored: string): string {
  if (!stored.includes('\\')) return stored
  return stored.replace(/\\(?:\\|u([0-9a-f]{4}))/g, (_, code: string | undefined) =>
    code === undefined ? '\\' : String.fromCharCode(Number.parseInt(code, 16)),
  )
}

// With the flag `u` a surrogate matches only where it stands alone.
// biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is what is looked for
const UNSTORABLE = /[\\\u0000\ud800-\udfff]/gu

function hex(character: string): string {
  return character.charCodeAt(0).toString(16).padStart(4, '0')
}
