const FIRST_SIZE = 4096

/** Writes little-endian numbers into a growing buffer. Reused for many messages. */
export class ByteWriter {
  #bytes = Buffer.allocUnsafe(FIRST_SIZE)
  #length = 0

  get length(): number {
    return this.#length
  }

  clear(): void {
    this.#length = 0
  }

  uint8(value: number): void {
    this.#reserve(1)
    this.#bytes[this.#length++] = value
  }

  uint16(value: number): void {
    this.#reserve(2)
    const at = this.#length
    this.#bytes[at] = value & 0xff
    this.#bytes[at + 1] = value >>> 8
    this.#length = at + 2
  }

  double(value: number): void {
    this.#reserve(8)
    this.#bytes.writeDoubleLE(value, this.#length)
    this.#length += 8
  }

  bytes(value: Buffer): void {
    this.#reserve(value.length)
    value.copy(this.#bytes, this.#length)
    this.#length += value.length
  }

  /** Appends the contents of another writer. */
  append(other: ByteWriter): void {
    this.#reserve(other.#length)
    other.#bytes.copy(this.#bytes, this.#length, 0, other.#length)
    this.#length += other.#length
  }

  /** Overwrites two bytes that were written before. */
  patchUint16(at: number, value: number): void {
    this.#bytes.writeUInt16LE(value, at)
  }

  /** A copy of the message. */
  take(): Buffer {
    return Buffer.from(this.#bytes.subarray(0, this.#length))
  }

  #reserve(size: number): void {
    if (this.#length + size <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + size))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}
