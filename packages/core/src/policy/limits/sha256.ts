const INITIAL: readonly number[] = [
  0x6a_09_e6_67, 0xbb_67_ae_85, 0x3c_6e_f3_72, 0xa5_4f_f5_3a, 0x51_0e_52_7f, 0x9b_05_68_8c, 0x1f_83_d9_ab,
  0x5b_e0_cd_19,
]

const BLOCK_BYTES = 64

/** The 32-bit fractions of the cube roots of the first 64 primes. */
const ROUND_CONSTANTS: Int32Array = roundConstants()

/**
 * SHA-256 of the UTF-16 code units of `text`, low byte first, in hexadecimal. The platform's own functions are
 * asynchronous or specific to Node; this one is for the rare identity that is too long to be a key, where two must
 * never collide, on any machine. UTF-8 is not suitable: lone surrogates all have the same encoding.
 */
export function sha256(text: string): string {
  const message = padded(bytesOf(text))
  const state = Int32Array.from(INITIAL)
  const schedule = new Int32Array(64)
  const view = new DataView(message.buffer)
  for (let offset = 0; offset < message.length; offset += BLOCK_BYTES) {
    for (let index = 0; index < 16; index++) schedule[index] = view.getInt32(offset + 4 * index)
    compress(state, schedule)
  }
  return [...state].map((word) => (word >>> 0).toString(16).padStart(8, '0')).join('')
}

function bytesOf(text: string): Uint8Array {
  const bytes = new Uint8Array(2 * text.length)
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    bytes[2 * index] = unit
    bytes[2 * index + 1] = unit >>> 8
  }
  return bytes
}

function padded(bytes: Uint8Array): Uint8Array {
  const message = new Uint8Array(Math.ceil((bytes.length + 9) / BLOCK_BYTES) * BLOCK_BYTES)
  message.set(bytes)
  message[bytes.length] = 0x80
  const view = new DataView(message.buffer)
  view.setUint32(message.length - 8, Math.floor(bytes.length / 0x20_00_00_00))
  view.setUint32(message.length - 4, (bytes.length * 8) >>> 0)
  return message
}

function compress(state: Int32Array, schedule: Int32Array): void {
  for (let index = 16; index < 64; index++) {
    const early = schedule[index - 15]!
    const late = schedule[index - 2]!
    const s0 = turn(early, 7) ^ turn(early, 18) ^ (early >>> 3)
    const s1 = turn(late, 17) ^ turn(late, 19) ^ (late >>> 10)
    schedule[index] = schedule[index - 16]! + s0 + schedule[index - 7]! + s1
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number]
  for (let index = 0; index < 64; index++) {
    const s1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)
    const first = (h + s1 + ((e & f) ^ (~e & g)) + ROUND_CONSTANTS[index]! + schedule[index]!) | 0
    const s0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)
    const second = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
    h = g
    g = f
    f = e
    e = (d + first) | 0
    d = c
    c = b
    b = a
    a = (first + second) | 0
  }
  for (const [index, word] of [a, b, c, d, e, f, g, h].entries()) state[index]! += word
}

function turn(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits))
}

function roundConstants(): Int32Array {
  const constants = new Int32Array(64)
  let found = 0
  for (let candidate = 2; found < 64; candidate++) {
    if (!isPrime(candidate)) continue
    const root = Math.cbrt(candidate)
    constants[found++] = Math.floor((root - Math.floor(root)) * 0x1_00_00_00_00)
  }
  return constants
}

function isPrime(candidate: number): boolean {
  for (let divisor = 2; divisor * divisor <= candidate; divisor++) if (candidate % divisor === 0) return false
  return true
}
