/** What a server answers: bulk and simple strings as bytes, integers, arrays, null, and its complaints as errors. */
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

/** Longest reply of which no end has been seen: what the store asks for is answered in a hundredth of it. */
const MOST_BYTES = 16 * 1024 * 1024

/** The bytes end before the reply does. */
const INCOMPLETE: unique symbol = Symbol('incomplete')

/**
 * Takes replies out of what a server sends, in the second version of its protocol, which every server speaks unless it is asked
 * for another. A reply that has not arrived as a whole is read from its beginning when more has: replies are short here.
 */
export class RespReader {
  #bytes: Buffer = Buffer.alloc(0)
  #at = 0

  /** Adds what has arrived. */
  add(chunk: Buffer): void {
    this.#bytes = this.#at === this.#bytes.length ? chunk : Buffer.concat([this.#bytes.subarray(this.#at), chunk])
    this.#at = 0
  }

  /**
   * The next reply; undefined when it has not arrived yet. Throws when what has arrived is not of this protocol: then nothing
   * that follows can be read either.
   */
  next(): RespReply | undefined {
    const start = this.#at
    const reply = this.#reply()
    if (reply !== INCOMPLETE) return reply
    this.#at = start
    if (this.#bytes.length - start > MOST_BYTES) throw tooLong()
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
    if (length > MOST_BYTES) throw tooLong()
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

  /** Digits up to the end of the line. */
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

  /** Everything up to the end of the line. */
  #line(): Buffer | typeof INCOMPLETE {
    const end = this.#bytes.indexOf(LINE_FEED, this.#at)
    if (end < 0) return INCOMPLETE
    const line = this.#bytes.subarray(this.#at, end - 1)
    this.#at = end + 1
    return line
  }
}

function tooLong(): Error {
  return notResp(`a reply of more than ${MOST_BYTES} bytes`)
}

function notResp(received: string): Error {
  return new Error(`the server does not speak RESP, the protocol of Redis: it sent ${received}`)
}
