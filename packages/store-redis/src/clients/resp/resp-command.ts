import type { RedisArgument } from '../../connection/connection.ts'

/** A command as the bytes that a server takes: an array of bulk strings. */
export function respCommand(command: readonly RedisArgument[]): Buffer {
  return encoded(command, lengthOfAscii) ?? encoded(command, Buffer.byteLength)!
}

/** How many bytes a text has that has one for each character, as nearly all have: to count them takes longer than to write them. */
function lengthOfAscii(text: string): number {
  return text.length
}

/**
 * Texts are joined before they are written: to write each by itself takes longer than everything else about a command.
 * Undefined when a text has other bytes than `lengthOf` says.
 */
function encoded(command: readonly RedisArgument[], lengthOf: (text: string) => number): Buffer | undefined {
  const parts: RedisArgument[] = []
  let text = `*${command.length}\r\n`
  let length = 0
  for (const argument of command) {
    if (typeof argument === 'string') {
      text += `$${lengthOf(argument)}\r\n${argument}\r\n`
    } else {
      parts.push(`${text}$${argument.length}\r\n`, argument)
      text = '\r\n'
    }
  }
  parts.push(text)
  for (const part of parts) length += Buffer.byteLength(part)
  const bytes = Buffer.allocUnsafe(length)
  let at = 0
  for (const part of parts) {
    const end = at + (typeof part === 'string' ? bytes.write(part, at) : part.copy(bytes, at))
    if (typeof part === 'string' && lengthOf(part) !== end - at) return undefined
    at = end
  }
  return bytes
}
