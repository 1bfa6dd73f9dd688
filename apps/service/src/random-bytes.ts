import type { Random } from '@sluice/core'

/** So many bytes that nobody can guess. */
export function drawBytes(random: Random, count: number): Uint8Array {
  const words = Uint32Array.from({ length: Math.ceil(count / 4) }, () => random.nextUint32())
  return new Uint8Array(words.buffer).slice(0, count)
}

/** So many bytes that nobody can guess, in hexadecimal digits. */
export function drawHex(random: Random, count: number): string {
  return Buffer.from(drawBytes(random, count)).toString('hex')
}
