import type { RedisArgument } from '../../connection/connection.ts'

/** Encodes a command as an array of bulk strings. */
export function encodeCommand(command: readonly RedisArgument[]): Buffer {
  return encode(command, lengthOfAscii) ?? encode(command, Buffer.byteLength)!
}

/**
 * The bytes of an ASCII string. Nearly all strings are ASCII, and counting their bytes takes longer than writing them.
 */
function lengthOfAscii(text: string): number {
  return text.length
}

/**
 * Joins strings before writing them: one write per string would take longer than the rest of the encoding.
 * Returns undefined when a string has another length in bytes than `lengthOf` returned.
 */
function encode(command: readonly RedisArgument[], lengthOf: (text: string) => number): Buffer | undefined {
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

/** A decoded reply: bulk and simple strings as buffers, integers, arrays, null, and error replies as errors. */
export type RespReply = Buffer | number | null | Error | readonly RespReply[]

const LINE_FEED = 10
const CARRIAGE_RETURN = 13
const MINUS = 45
const ZERO = 48

const SIMPLE_STRING = 43
const ERROR = 45
const INTEGER = 58
const BULK_STRING = 36
const ARRAY = 42

/** Maximum size of a reply. Replies to the store are at most a hundredth of it. */
const MAX_REPLY_BYTES = 16 * 1024 * 1024

/** The rest of the reply has not arrived yet. */
const INCOMPLETE: unique symbol = Symbol('incomplete')

/**
 * Decodes RESP2, the protocol that every server speaks by default. An incomplete reply is decoded again from its start
 * when more bytes have arrived: replies are short here.
 */
export class RespReader {
  #bytes: Buffer = Buffer.alloc(0)
  #at = 0

  /** Adds bytes that have arrived. */
  add(chunk: Buffer): void {
    this.#bytes = this.#at === this.#bytes.length ? chunk : Buffer.concat([this.#bytes.subarray(this.#at), chunk])
    this.#at = 0
  }

  /**
   * The next reply, or undefined when it has not arrived yet. Throws on invalid input: nothing after it can be decoded.
   */
  next(): RespReply | undefined {
    const start = this.#at
    const reply = this.#reply()
    if (reply !== INCOMPLETE) return reply
    this.#at = start
    if (this.#bytes.length - start > MAX_REPLY_BYTES) throw tooLong()
    return undefined
  }

  #reply(): RespReply | typeof INCOMPLETE {
    if (this.#at === this.#bytes.length) return INCOMPLETE
    const type = this.#bytes[this.#at++]!
    switch (type) {
      case BULK_STRING:
        return this.#bulk()
      case INTEGER:
        return this.#integer()
      case ARRAY:
        return this.#array()
      case SIMPLE_STRING:
        return this.#line()
      case ERROR: {
        const line = this.#line()
        return line === INCOMPLETE ? line : new Error(line.toString())
      }
      default:
        throw notResp(`a reply that begins with ${JSON.stringify(String.fromCharCode(type))}`)
    }
  }

  #bulk(): Buffer | null | typeof INCOMPLETE {
    const length = this.#integer()
    if (length === INCOMPLETE) return INCOMPLETE
    if (length < 0) return null
    if (length > MAX_REPLY_BYTES) throw tooLong()
    const end = this.#at + length
    if (end + 2 > this.#bytes.length) return INCOMPLETE
    if (this.#bytes[end] !== CARRIAGE_RETURN) throw notResp('a string that is longer than it says')
    const bytes = this.#bytes.subarray(this.#at, end)
    this.#at = end + 2
    return bytes
  }

  #array(): readonly RespReply[] | null | typeof INCOMPLETE {
    const length = this.#integer()
    if (length === INCOMPLETE) return INCOMPLETE
    if (length < 0) return null
    const replies: RespReply[] = []
    while (replies.length < length) {
      const reply = this.#reply()
      if (reply === INCOMPLETE) return INCOMPLETE
      replies.push(reply)
    }
    return replies
  }

  #integer(): number | typeof INCOMPLETE {
    const isNegative = this.#bytes[this.#at] === MINUS
    const first = isNegative ? this.#at + 1 : this.#at
    let value = 0
    for (let at = first; at < this.#bytes.length; at++) {
      const digit = this.#bytes[at]! - ZERO
      if (digit >= 0 && digit <= 9) {
        value = value * 10 + digit
        continue
      }
      if (this.#bytes[at] !== CARRIAGE_RETURN || at === first) throw notResp('something else in place of a number')
      if (at + 1 === this.#bytes.length) return INCOMPLETE
      this.#at = at + 2
      return isNegative ? -value : value
    }
    return INCOMPLETE
  }

  #line(): Buffer | typeof INCOMPLETE {
    const end = this.#bytes.indexOf(LINE_FEED, this.#at)
    if (end < 0) return INCOMPLETE
    const line = this.#bytes.subarray(this.#at, end - 1)
    this.#at = end + 1
    return line
  }
}

function tooLong(): Error {
  return notResp(`a reply of more than ${MAX_REPLY_BYTES} bytes`)
}

function notResp(received: string): Error {
  return new Error(`the server does not speak RESP, the protocol of Redis: it sent ${received}`)
}
