/** A reply of a Redis server, in version 2 of its protocol. Nil is null; an error inside an array is a value. */
export type Reply = string | number | null | RedisReplyError | readonly Reply[]

/** An error reply of a Redis server. */
export class RedisReplyError extends Error {
  override readonly name = 'RedisReplyError'
  /** Its first word: `ERR`, `MOVED`, `NOSCRIPT`, `WRONGTYPE`. */
  readonly code: string

  constructor(message: string) {
    super(message)
    this.code = message.split(' ', 1)[0] ?? ''
  }
}

interface Read {
  readonly reply: Reply
  /** Start of the next reply. */
  readonly end: number
}

/** Finds the replies in a stream of bytes that arrives in chunks of any size. */
export class ReplyParser {
  readonly #encoding: BufferEncoding
  #bytes: Buffer = Buffer.alloc(0)

  /** @param encoding - of strings; `latin1` keeps every byte as a character of its own */
  constructor(encoding: BufferEncoding = 'utf8') {
    this.#encoding = encoding
  }

  /**
   * Takes the next chunk; returns the completed replies, in order.
   *
   * @throws Error if the bytes are not this protocol
   */
  push(piece: Buffer): Reply[] {
    this.#bytes = Buffer.concat([this.#bytes, piece])
    const replies: Reply[] = []
    let at = 0
    for (let read = this.#read(at); read !== undefined; read = this.#read(at)) {
      replies.push(read.reply)
      at = read.end
    }
    this.#bytes = this.#bytes.subarray(at)
    return replies
  }

  /** The reply at a position; undefined while it is incomplete. */
  #read(at: number): Read | undefined {
    const lineEnd = this.#bytes.indexOf('\r\n', at)
    if (lineEnd < 0) return undefined
    const kind = this.#bytes.toString('latin1', at, at + 1)
    const line = this.#bytes.toString(this.#encoding, at + 1, lineEnd)
    const end = lineEnd + 2
    switch (kind) {
      case '+':
        return { reply: line, end }
      case '-':
        return { reply: new RedisReplyError(line), end }
      case ':':
        return { reply: Number(line), end }
      case '$':
        return this.#readText(Number(line), end)
      case '*':
        return this.#readArray(Number(line), end)
      default:
        throw new Error(`Received ${JSON.stringify(kind + line)}; expected a reply of a Redis server. Is it one?`)
    }
  }

  #readText(length: number, start: number): Read | undefined {
    if (length < 0) return { reply: null, end: start }
    const end = start + length
    if (this.#bytes.length < end + 2) return undefined
    return { reply: this.#bytes.toString(this.#encoding, start, end), end: end + 2 }
  }

  #readArray(length: number, start: number): Read | undefined {
    if (length < 0) return { reply: null, end: start }
    const replies: Reply[] = []
    let end = start
    while (replies.length < length) {
      const read = this.#read(end)
      if (read === undefined) return undefined
      replies.push(read.reply)
      end = read.end
    }
    return { reply: replies, end }
  }
}
