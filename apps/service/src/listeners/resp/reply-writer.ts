import type { ThrottleAnswer } from '../../operations/throttle/cl-throttle.ts'

const CARRIAGE_RETURN = 13
const LINE_FEED = 10
const COLON = 58
const MINUS = 45
const ZERO = 48
const ONE = 49

const FIRST_SIZE = 16_384

/** Longest integer with its type and line end. */
const INTEGER_BYTES = 24

/** A value of a reply. Objects are maps: in RESP2, arrays of names and values. */
export type ReplyValue =
  | number
  | string
  | null
  | readonly ReplyValue[]
  | { readonly [name: string]: ReplyValue }
  | SimpleString

/** A reply without a length, such as `OK`: no line ends in it. */
export class SimpleString {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

export const OK: SimpleString = new SimpleString('OK')

/** An error reply: its first word is the code that clients recognise it by. */
export class ReplyError extends Error {
  override readonly name = 'ReplyError'
}

/** Writes replies one after the other into a buffer of its own, which it reuses. */
export class ReplyWriter {
  /** 2 or 3. */
  protocol = 2
  #bytes: Buffer = Buffer.allocUnsafeSlow(FIRST_SIZE)
  #length = 0

  get length(): number {
    return this.#length
  }

  /** A copy of what was written since the last call. */
  take(): Buffer {
    const taken = Buffer.allocUnsafe(this.#length)
    this.#bytes.copy(taken, 0, 0, this.#length)
    this.#length = 0
    if (this.#bytes.length > FIRST_SIZE) this.#bytes = Buffer.allocUnsafeSlow(FIRST_SIZE)
    return taken
  }

  append(bytes: Buffer): void {
    this.#reserve(bytes.length)
    this.#length += bytes.copy(this.#bytes, this.#length)
  }

  /** Writes a whole number. */
  integer(value: number): void {
    this.#reserve(INTEGER_BYTES)
    this.#integer(value)
  }

  /** Writes the five numbers of `CL.THROTTLE`. */
  throttle(answer: ThrottleAnswer): void {
    this.#reserve(5 * INTEGER_BYTES)
    const bytes = this.#bytes
    let at = this.#length
    // *5\r\n:0\r\n
    bytes[at++] = 42
    bytes[at++] = 53
    bytes[at++] = CARRIAGE_RETURN
    bytes[at++] = LINE_FEED
    bytes[at++] = COLON
    bytes[at++] = answer.allowed ? ZERO : ONE
    bytes[at++] = CARRIAGE_RETURN
    bytes[at++] = LINE_FEED
    this.#length = at
    this.#integer(answer.limit)
    this.#integer(answer.remaining)
    this.#integer(answer.retryAfterSeconds)
    this.#integer(answer.resetAfterSeconds)
  }

  /** Writes an error. Line ends become blanks. */
  error(text: string): void {
    this.#text(`-${text.replace(/[\r\n]+/g, ' ')}\r\n`)
  }

  /** Writes any value. Integers must be safe; other numbers become strings. */
  value(value: ReplyValue): void {
    if (typeof value === 'number' && Number.isSafeInteger(value)) this.integer(value)
    else if (typeof value === 'number') this.value(String(value))
    else if (typeof value === 'string') this.#text(`$${Buffer.byteLength(value)}\r\n${value}\r\n`)
    else if (value === null) this.#text(this.protocol === 3 ? '_\r\n' : '$-1\r\n')
    else if (value instanceof SimpleString) this.#text(`+${value.text}\r\n`)
    else if (Array.isArray(value)) {
      this.#text(`*${value.length}\r\n`)
      for (const item of value as readonly ReplyValue[]) this.value(item)
    } else {
      const entries = Object.entries(value as { readonly [name: string]: ReplyValue })
      this.#text(this.protocol === 3 ? `%${entries.length}\r\n` : `*${entries.length * 2}\r\n`)
      for (const [name, item] of entries) {
        this.value(name)
        this.value(item)
      }
    }
  }

  #integer(value: number): void {
    const bytes = this.#bytes
    let at = this.#length
    bytes[at++] = COLON
    let rest = value
    if (rest < 0) {
      bytes[at++] = MINUS
      rest = -rest
    }
    let divisor = 1
    while (divisor * 10 <= rest) divisor *= 10
    for (; divisor >= 1; divisor /= 10) {
      const digit = Math.floor(rest / divisor)
      bytes[at++] = ZERO + digit
      rest -= digit * divisor
    }
    bytes[at++] = CARRIAGE_RETURN
    bytes[at++] = LINE_FEED
    this.#length = at
  }

  #text(text: string): void {
    this.#reserve(Buffer.byteLength(text))
    this.#length += this.#bytes.write(text, this.#length)
  }

  #reserve(length: number): void {
    const needed = this.#length + length
    if (needed <= this.#bytes.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}
