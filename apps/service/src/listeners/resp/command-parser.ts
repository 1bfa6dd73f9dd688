/** Maximum number of arguments of a command, its name included. */
export const MAX_ARGUMENTS = 256

/** Maximum length of one argument, in bytes. */
export const MAX_ARGUMENT_BYTES = 16_384

/** Maximum length of a command with everything around its arguments, in bytes. */
export const MAX_COMMAND_BYTES = 65_536

const LINE_FEED = 10
const CARRIAGE_RETURN = 13
const SPACE = 32
const TAB = 9
const DOUBLE_QUOTE = 34
const SINGLE_QUOTE = 39
const BACKSLASH = 92
const DOLLAR = 36
const ASTERISK = 42
const ZERO = 48

/** Longest line of a number: a sign is never valid, and 10 digits are more than any maximum. */
const MAX_NUMBER_DIGITS = 10

/** The bytes received cannot be a command, and where the next one begins is unknown. The connection must be closed. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError'
}

const NO_BYTES = Buffer.alloc(0)

/**
 * Splits the bytes of a connection into commands: arrays of bulk strings, or lines of words ("inline"). Every length is
 * compared with its maximum when it is read, before anything is kept. A command that is not complete is kept and read
 * again from its start when more bytes have come, which its maximum length bounds.
 */
export class CommandParser {
  /** The bytes that `starts` and `ends` point into. Valid until the next call. */
  bytes: Buffer = NO_BYTES
  /** Where the arguments of the last command begin and end. */
  readonly starts: Int32Array = new Int32Array(MAX_ARGUMENTS)
  readonly ends: Int32Array = new Int32Array(MAX_ARGUMENTS)
  /** Whether the last command was a line. */
  isInline = false
  #at = 0

  /** Whether bytes of a command that is not complete are kept. */
  get isWaiting(): boolean {
    return this.#at < this.bytes.length
  }

  /** Adds bytes that were received. They must not change until they are read. */
  add(chunk: Buffer): void {
    this.bytes = this.#at < this.bytes.length ? Buffer.concat([this.bytes.subarray(this.#at), chunk]) : chunk
    this.#at = 0
  }

  /** Copies what is left, so that it does not hold the memory of a whole read. */
  keepRest(): void {
    this.bytes = this.isWaiting ? Buffer.from(this.bytes.subarray(this.#at)) : NO_BYTES
    this.#at = 0
  }

  /**
   * Reads the next command. Returns the number of its arguments; 0 for an empty one; -1 if it is not complete.
   * Throws {@link ProtocolError}.
   */
  next(): number {
    const { bytes } = this
    const from = this.#at
    if (from >= bytes.length) return -1
    this.isInline = bytes[from] !== ASTERISK
    const count = this.isInline ? this.#line(from) : this.#array(from)
    if (count < 0 && bytes.length - from > MAX_COMMAND_BYTES) {
      throw new ProtocolError(`too big command, more than ${MAX_COMMAND_BYTES} bytes`)
    }
    return count
  }

  /** An argument as text. */
  text(index: number): string {
    return this.bytes.toString('utf8', this.starts[index]!, this.ends[index]!)
  }

  /** An argument as text with one character for each byte: different bytes are always different texts. */
  binary(index: number): string {
    return this.bytes.toString('latin1', this.starts[index]!, this.ends[index]!)
  }

  /** An argument as a whole number of at most 15 digits; undefined for anything else. */
  whole(index: number): number | undefined {
    const { bytes } = this
    const start = this.starts[index]!
    const end = this.ends[index]!
    if (end === start || end - start > 15) return undefined
    let value = 0
    for (let at = start; at < end; at++) {
      const digit = bytes[at]! - ZERO
      if (digit < 0 || digit > 9) return undefined
      value = value * 10 + digit
    }
    return value
  }

  #array(from: number): number {
    const count = this.#number(from + 1, MAX_ARGUMENTS, 'multibulk length')
    if (count < 0) return -1
    const { bytes, starts, ends } = this
    let at = this.#end
    for (let index = 0; index < count; index++) {
      if (at >= bytes.length) return -1
      if (bytes[at] !== DOLLAR) throw new ProtocolError(`expected '$', got '${shown(bytes[at]!)}'`)
      const length = this.#number(at + 1, MAX_ARGUMENT_BYTES, 'bulk length')
      if (length < 0) return -1
      const start = this.#end
      const end = start + length
      at = end + 2
      if (at > bytes.length) return -1
      if (bytes[end] !== CARRIAGE_RETURN || bytes[end + 1] !== LINE_FEED) {
        throw new ProtocolError('expected a line end after a bulk string')
      }
      starts[index] = start
      ends[index] = end
    }
    this.#at = at
    return count
  }

  /** Where the last number ended, behind its line end. */
  #end = 0

  /** The number from `from` to its line end; -1 if the line end has not come. */
  #number(from: number, most: number, what: string): number {
    const { bytes } = this
    let value = 0
    let at = from
    for (; at < bytes.length; at++) {
      const byte = bytes[at]!
      if (byte === CARRIAGE_RETURN) {
        if (at + 1 >= bytes.length) return -1
        if (at === from || bytes[at + 1] !== LINE_FEED) throw new ProtocolError(`invalid ${what}`)
        this.#end = at + 2
        return value
      }
      const digit = byte - ZERO
      value = value * 10 + digit
      if (digit < 0 || digit > 9 || at - from >= MAX_NUMBER_DIGITS || value > most) {
        throw new ProtocolError(`invalid ${what}`)
      }
    }
    return -1
  }

  #line(from: number): number {
    const { bytes } = this
    const end = bytes.indexOf(LINE_FEED, from)
    if (end < 0 ? bytes.length - from > MAX_ARGUMENT_BYTES : end - from > MAX_ARGUMENT_BYTES) {
      throw new ProtocolError('too big inline request')
    }
    if (end < 0) return -1
    this.#at = end + 1
    return this.#words(from, end > from && bytes[end - 1] === CARRIAGE_RETURN ? end - 1 : end)
  }

  /** Splits a line at blanks. */
  #words(from: number, end: number): number {
    const { bytes } = this
    let count = 0
    let at = from
    for (;;) {
      while (at < end && isBlank(bytes[at]!)) at++
      if (at >= end) return count
      if (count === MAX_ARGUMENTS) throw new ProtocolError('invalid multibulk length')
      at = this.#word(at, { end, index: count })
      count++
    }
  }

  /**
   * A word up to the next blank, as Redis reads it: quotes may begin anywhere in it and end it. Without quotes and
   * backslashes it is shorter, so it is written where it was read. Returns where it ends.
   */
  #word(from: number, { end, index }: { readonly end: number; readonly index: number }): number {
    const { bytes } = this
    let quote: number | undefined
    let to = from
    let at = from
    while (at < end && (quote !== undefined || !isBlank(bytes[at]!))) {
      const byte = bytes[at++]!
      if (byte === quote) {
        if (at < end && !isBlank(bytes[at]!)) throw new ProtocolError('unbalanced quotes in request')
        quote = undefined
      } else if (quote === undefined && (byte === DOUBLE_QUOTE || byte === SINGLE_QUOTE)) quote = byte
      else if (byte === BACKSLASH && at < end && (quote === DOUBLE_QUOTE || bytes[at] === quote)) {
        const { byte: meant, length } = escaped(bytes, at, end)
        bytes[to++] = meant
        at += length
      } else bytes[to++] = byte
    }
    if (quote !== undefined) throw new ProtocolError('unbalanced quotes in request')
    this.starts[index] = from
    this.ends[index] = to
    return at
  }
}

const HEX_ESCAPE = /^x([\da-f]{2})/i

/** What letters after a backslash stand for; all other bytes stand for themselves. */
const ESCAPES: ReadonlyMap<number, number> = new Map(
  Object.entries({ n: '\n', r: '\r', t: '\t', b: '\b', a: '\x07' }).map(([letter, meant]) => [
    letter.charCodeAt(0),
    meant.charCodeAt(0),
  ]),
)

/** What the bytes after a backslash stand for, and how many of them belong to it. */
function escaped(bytes: Buffer, at: number, end: number): { readonly byte: number; readonly length: number } {
  const hex = HEX_ESCAPE.exec(bytes.toString('latin1', at, Math.min(end, at + 3)))
  if (hex !== null) return { byte: Number.parseInt(hex[1]!, 16), length: 3 }
  const byte = bytes[at]!
  return { byte: ESCAPES.get(byte) ?? byte, length: 1 }
}

function isBlank(byte: number): boolean {
  return byte === SPACE || byte === TAB
}

function shown(byte: number): string {
  return byte > SPACE && byte < 127 ? String.fromCharCode(byte) : `0x${byte.toString(16)}`
}
