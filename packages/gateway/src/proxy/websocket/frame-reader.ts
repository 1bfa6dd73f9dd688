/** Opcodes of control frames have this bit. */
const CONTROL_BIT = 0x8
const CONTINUATION = 0x0
const LAST_DATA_OPCODE = 0x2
const LAST_CONTROL_OPCODE = 0xa

const FIN_BIT = 0x80
const MASK_BIT = 0x80
const MASK_BYTES = 4

/** Lengths of 126 and 127 stand for 2 and 8 further bytes. */
const LONGEST_CONTROL = 125
const TWO_BYTES = 126
const EIGHT_BYTES = 127

/** 2 bytes, 8 for the length, 4 for the mask. */
const LONGEST_HEADER = 14

/** What came in one chunk. */
export interface FrameCounts {
  /** Messages that began, control frames included: each makes the receiver act. */
  readonly messages: number
  /** Where the first frame that was complete in this chunk ends; -1 if none was. */
  readonly firstEnd: number
}

/**
 * Follows the frames of one direction of a WebSocket (RFC 6455) by their headers. Payloads are neither kept nor
 * unmasked. Chunks may begin and end anywhere.
 */
export class FrameReader {
  readonly #isMasked: boolean
  readonly #header = new Uint8Array(LONGEST_HEADER)
  #headerBytes = 0
  /** Bytes of the current payload that have not come yet. */
  #payloadLeft = 0
  #isInMessage = false
  #isBroken = false

  /** `isMasked`: whether frames must be masked. Those of clients must, those of servers must not. */
  constructor(isMasked: boolean) {
    this.#isMasked = isMasked
  }

  /** Whether the next byte begins a frame. */
  get isAtBoundary(): boolean {
    return this.#headerBytes === 0 && this.#payloadLeft === 0
  }

  /** Whether the bytes are no frames. Nothing is read any more. */
  get isBroken(): boolean {
    return this.#isBroken
  }

  read(chunk: Uint8Array): FrameCounts {
    let messages = 0
    let firstEnd = -1
    let at = 0
    while (at < chunk.length && !this.#isBroken) {
      if (this.#payloadLeft > 0) {
        const skipped = Math.min(this.#payloadLeft, chunk.length - at)
        this.#payloadLeft -= skipped
        at += skipped
      } else {
        this.#header[this.#headerBytes++] = chunk[at++]!
        if (!this.#isHeaderComplete()) continue
        if (this.#beginFrame()) messages++
        this.#headerBytes = 0
      }
      if (firstEnd < 0 && this.isAtBoundary && !this.#isBroken) firstEnd = at
    }
    return { messages, firstEnd }
  }

  #isHeaderComplete(): boolean {
    if (this.#headerBytes < 2) return false
    const second = this.#header[1]!
    return this.#headerBytes === 2 + lengthBytes(second & EIGHT_BYTES) + ((second & MASK_BIT) === 0 ? 0 : MASK_BYTES)
  }

  /** Takes a complete header over. True if a message or a control frame begins. */
  #beginFrame(): boolean {
    const first = this.#header[0]!
    const second = this.#header[1]!
    const opcode = first & 0xf
    const isLast = (first & FIN_BIT) !== 0
    const isControl = (opcode & CONTROL_BIT) !== 0
    const length = this.#payloadLength(second & EIGHT_BYTES)
    const isKnown = isControl ? opcode <= LAST_CONTROL_OPCODE : opcode <= LAST_DATA_OPCODE
    const isFit = isControl ? isLast && length <= LONGEST_CONTROL : (opcode === CONTINUATION) === this.#isInMessage
    const isMasked = (second & MASK_BIT) !== 0
    if (!(isKnown && isFit && isMasked === this.#isMasked && Number.isSafeInteger(length))) {
      this.#isBroken = true
      return false
    }
    this.#payloadLeft = length
    if (!isControl) this.#isInMessage = !isLast
    return isControl || opcode !== CONTINUATION
  }

  #payloadLength(short: number): number {
    let length = 0
    const bytes = lengthBytes(short)
    if (bytes === 0) return short
    for (let index = 2; index < 2 + bytes; index++) length = length * 256 + this.#header[index]!
    return length
  }
}

function lengthBytes(short: number): number {
  if (short === TWO_BYTES) return 2
  return short === EIGHT_BYTES ? 8 : 0
}

/** A close frame of a server. */
export function closeFrame(code: number, reason: string): Buffer {
  const text = Buffer.from(reason)
  return Buffer.concat([Buffer.from([FIN_BIT | 0x8, 2 + text.length, code >> 8, code & 0xff]), text])
}
