/** The largest whole number that a structured field can hold (RFC 9651): 15 digits. */
const LARGEST_INTEGER = 999_999_999_999_999

/** Longest text that is written, before it is escaped. */
const LONGEST_TEXT = 256

const PRINTABLE = /^[ !#-$&-[\]-~]*$/
const UNPRINTABLE = /[^ -~]|%/gu
const ESCAPED = /["\\]/g

const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** An Integer of a structured field: `value` without its fraction, from 0 to 15 digits; 0 for what is no number. */
export function fieldInteger(value: number): string {
  if (value >= LARGEST_INTEGER) return String(LARGEST_INTEGER)
  return value > 0 ? String(Math.floor(value)) : '0'
}

/**
 * A String of a structured field. It can hold printable ASCII only: every other character is percent-encoded as in a URL, and
 * so is `%`, so that two texts never look alike. Long texts are cut.
 */
export function fieldString(text: string): string {
  const short = text.length > LONGEST_TEXT ? text.slice(0, LONGEST_TEXT) : text
  if (PRINTABLE.test(short)) return `"${short}"`
  const ascii = short.toWellFormed().replace(UNPRINTABLE, (character) => encodeURIComponent(character))
  return `"${ascii.replace(ESCAPED, '\\$&')}"`
}

/** A Byte Sequence of a structured field: base64 between colons. */
export function fieldBytes(bytes: Uint8Array): string {
  let text = ''
  for (let index = 0; index < bytes.length; index += 3) {
    const [one = 0, two, three] = bytes.subarray(index, index + 3)
    const word = (one << 16) | ((two ?? 0) << 8) | (three ?? 0)
    text += BASE64[word >> 18]! + BASE64[(word >> 12) & 63]!
    text += two === undefined ? '=' : BASE64[(word >> 6) & 63]!
    text += three === undefined ? '=' : BASE64[word & 63]!
  }
  return `:${text}:`
}
