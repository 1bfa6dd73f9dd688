/** A message that is not valid protobuf. */
export class ProtobufError extends Error {
  override readonly name = 'ProtobufError'
}

/** How the value of a field is encoded. */
export const WIRE_TYPE = { varint: 0, fixed64: 1, bytes: 2, startGroup: 3, endGroup: 4, fixed32: 5 } as const

/** Field number and wire type as one number, as messages have it. */
export function tagOf(field: number, wireType: number): number {
  return field * 8 + wireType
}

/** Groups may be nested in unknown fields only; deeper ones are rejected. */
const MAX_GROUP_DEPTH = 32

const LONGEST_VARINT = 10

const TWO_TO_32 = 4_294_967_296

/** Largest upper half of a number that is exact. */
const LARGEST_HIGH_BITS = 0x1f_ffff

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Longest text that is decoded byte by byte while it is ASCII, which is faster than a call of the decoder. */
const SHORT_TEXT = 24

/**
 * Reads the fields of one message, or of a message within. It never reads beyond `end`, allocates nothing but strings,
 * and throws {@link ProtobufError} where the bytes are no valid message.
 */
export class ProtobufReader {
  readonly #bytes: Buffer
  #position: number
  #end: number
  #low = 0
  #high = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
    this.#position = 0
    this.#end = bytes.length
  }

  /** Whether the message has more fields. */
  get hasMore(): boolean {
    return this.#position < this.#end
  }

  /** The next tag, see {@link tagOf}. */
  tag(): number {
    const tag = this.uint32()
    if (this.#high !== 0 || tag < 8) throw new ProtobufError('a field has an invalid tag')
    return tag
  }

  /** The lower 32 bits of a number, as protobuf reads `uint32` and enumerations. */
  uint32(): number {
    const first = this.#position < this.#end ? this.#bytes[this.#position]! : 0x80
    if (first < 0x80) {
      this.#position++
      this.#high = 0
      return first
    }
    this.#readVarint()
    return this.#low
  }

  /** A number of 64 bits; `Infinity` where it is above what a number can tell exactly. */
  uint64(): number {
    this.#readVarint()
    return this.#high > LARGEST_HIGH_BITS ? Number.POSITIVE_INFINITY : this.#high * TWO_TO_32 + this.#low
  }

  bool(): boolean {
    this.#readVarint()
    return this.#low !== 0 || this.#high !== 0
  }

  /** A string. Its bytes must be valid UTF-8. */
  string(): string {
    const end = this.#lengthEnd()
    const start = this.#position
    this.#position = end
    if (end - start <= SHORT_TEXT) {
      let text = ''
      let index = start
      for (; index < end; index++) {
        const code = this.#bytes[index]!
        if (code > 0x7f) break
        text += String.fromCharCode(code)
      }
      if (index === end) return text
    }
    try {
      return UTF8.decode(this.#bytes.subarray(start, end))
    } catch (cause) {
      throw new ProtobufError('a string is not valid UTF-8', { cause })
    }
  }

  /**
   * Enters a message within: its fields come next, until it has no more. Returns what {@link leave} needs afterwards.
   * No callback, because one would be allocated for each message.
   */
  enter(): number {
    const outerEnd = this.#end
    this.#end = this.#lengthEnd()
    return outerEnd
  }

  /** Goes on after a message within that has no more fields. */
  leave(outerEnd: number): void {
    this.#end = outerEnd
  }

  /** Skips the value of a field that is unknown, or of another type than expected. */
  skip(tag: number, depth: number = MAX_GROUP_DEPTH): void {
    switch (tag & 7) {
      case WIRE_TYPE.varint:
        this.#readVarint()
        return
      case WIRE_TYPE.fixed64:
        this.#advance(8)
        return
      case WIRE_TYPE.bytes:
        this.#position = this.#lengthEnd()
        return
      case WIRE_TYPE.fixed32:
        this.#advance(4)
        return
      case WIRE_TYPE.startGroup:
        this.#skipGroup(tag >>> 3, depth)
        return
      default:
        throw new ProtobufError('a field has an invalid wire type')
    }
  }

  #skipGroup(field: number, depth: number): void {
    if (depth === 0) throw new ProtobufError('groups are nested too deep')
    for (;;) {
      const tag = this.tag()
      if ((tag & 7) === WIRE_TYPE.endGroup) {
        if (tag >>> 3 !== field) throw new ProtobufError('a group ends with another field number')
        return
      }
      this.skip(tag, depth - 1)
    }
  }

  #lengthEnd(): number {
    const length = this.uint32()
    const end = this.#position + length
    if (this.#high !== 0 || end > this.#end) throw new ProtobufError('a length is beyond the end of the message')
    return end
  }

  #advance(count: number): void {
    this.#position += count
    if (this.#position > this.#end) throw new ProtobufError('the message ends within a field')
  }

  /** Reads up to ten bytes into the two halves of a number. */
  #readVarint(): void {
    let low = 0
    let high = 0
    for (let index = 0; index < LONGEST_VARINT; index++) {
      if (this.#position >= this.#end) throw new ProtobufError('the message ends within a number')
      const byte = this.#bytes[this.#position++]!
      const bits = byte & 0x7f
      if (index < 4) low |= bits << (7 * index)
      else if (index === 4) {
        low |= bits << 28
        high = bits >>> 4
      } else high |= bits << (7 * index - 32)
      if (byte < 0x80) {
        this.#low = low >>> 0
        this.#high = high >>> 0
        return
      }
    }
    throw new ProtobufError('a number is longer than ten bytes')
  }
}

/** Length of the prefix of a gRPC message: a flag for compression, and four bytes of length. */
export const FRAME_PREFIX_BYTES = 5

const LARGEST_ONE_BYTE = 0x7f

/**
 * Writes one message. A message within is written after one byte for its length; if the length needs more, its bytes
 * are moved. The messages of this service are small, so that is rare.
 */
export class ProtobufWriter {
  #bytes: Buffer
  #length: number

  constructor(capacity: number) {
    this.#bytes = Buffer.allocUnsafe(capacity)
    this.#length = FRAME_PREFIX_BYTES
  }

  /** The message with the prefix that gRPC sends before it. The writer starts again. */
  takeFrame(): Buffer {
    const frame = Buffer.allocUnsafe(this.#length)
    this.#bytes.copy(frame, 0, 0, this.#length)
    frame[0] = 0
    frame.writeUInt32BE(this.#length - FRAME_PREFIX_BYTES, 1)
    this.#length = FRAME_PREFIX_BYTES
    return frame
  }

  /** A number from 0 on; 0 is left out, as protobuf does. */
  number(field: number, value: number): void {
    if (value === 0) return
    this.#reserve(2 * LONGEST_VARINT)
    this.#varint(tagOf(field, WIRE_TYPE.varint))
    this.#varint(value)
  }

  /** True or false, which is written too. */
  flag(field: number, value: boolean): void {
    this.#reserve(LONGEST_VARINT + 1)
    this.#varint(tagOf(field, WIRE_TYPE.varint))
    this.#bytes[this.#length++] = value ? 1 : 0
  }

  /** A number of 64 bits with a fraction; 0 is written too. */
  double(field: number, value: number): void {
    this.#reserve(LONGEST_VARINT + 8)
    this.#varint(tagOf(field, WIRE_TYPE.fixed64))
    this.#length = this.#bytes.writeDoubleLE(value, this.#length)
  }

  /** A string; an empty one is left out, as protobuf does. */
  string(field: number, value: string): void {
    if (value === '') return
    // Names and values of headers. Two calls of Buffer cost more than this loop.
    if (value.length <= SHORT_TEXT && this.#shortAscii(field, value)) return
    const length = Buffer.byteLength(value)
    this.#reserve(2 * LONGEST_VARINT + length)
    this.#varint(tagOf(field, WIRE_TYPE.bytes))
    this.#varint(length)
    this.#length += this.#bytes.write(value, this.#length, 'utf8')
  }

  /** Begins a message within: what is written next belongs to it. Returns what {@link end} needs. */
  begin(field: number): number {
    this.#reserve(LONGEST_VARINT)
    this.#varint(tagOf(field, WIRE_TYPE.bytes))
    return ++this.#length
  }

  /** Ends the message within that began at `start`. An empty one is there, too. */
  end(start: number): void {
    const length = this.#length - start
    if (length <= LARGEST_ONE_BYTE) {
      this.#bytes[start - 1] = length
      return
    }
    this.#reserve(LONGEST_VARINT)
    const moved = varintLength(length) - 1
    this.#bytes.copyWithin(start + moved, start, this.#length)
    this.#length = start - 1
    this.#varint(length)
    this.#length += length
  }

  /** Writes a string of ASCII; false, with nothing written, if it is none. */
  #shortAscii(field: number, value: string): boolean {
    this.#reserve(2 * LONGEST_VARINT + SHORT_TEXT)
    const start = this.#length
    this.#varint(tagOf(field, WIRE_TYPE.bytes))
    const bytes = this.#bytes
    let position = this.#length
    bytes[position++] = value.length
    for (let index = 0; index < value.length; index++) {
      const code = value.charCodeAt(index)
      if (code > LARGEST_ONE_BYTE) {
        this.#length = start
        return false
      }
      bytes[position++] = code
    }
    this.#length = position
    return true
  }

  #varint(value: number): void {
    let rest = value
    while (rest > LARGEST_ONE_BYTE) {
      this.#bytes[this.#length++] = (rest % 128) | 0x80
      rest = Math.floor(rest / 128)
    }
    this.#bytes[this.#length++] = rest
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(2 * this.#bytes.length, this.#length + count))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}

function varintLength(value: number): number {
  let length = 1
  for (let rest = value; rest > LARGEST_ONE_BYTE; rest = Math.floor(rest / 128)) length++
  return length
}
