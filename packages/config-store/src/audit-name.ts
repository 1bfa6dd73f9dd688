/** What would let a value be taken for more than one, or for another: spaces, quotes, and what no terminal shows. */
const UNCLEAR = /[\s"\\\p{C}]/u
const INVISIBLE = /[^\S ]|\p{C}/gu

/**
 * A value as the `target` of an audit record has it: as it is, or in quotes as JSON writes it where it could be misread. So
 * `user:"a tenant:b"` names one caller, and `user:a tenant:b` two.
 */
export function auditName(value: string): string {
  if (value !== '' && !UNCLEAR.test(value)) return value
  return JSON.stringify(value).replaceAll(INVISIBLE, escaped)
}

function escaped(text: string): string {
  return Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join(
    '',
  )
}
