/** Slots of a Redis Cluster. */
export const SLOT_COUNT = 16_384

/**
 * The slot of a key, from 0 to 16 383: CRC-16 (XMODEM) of its UTF-8 bytes, or of what stands between the first `{` and
 * the next `}` when that is not empty.
 */
export function slotOf(key: string): number {
  const open = key.indexOf('{')
  const close = open < 0 ? -1 : key.indexOf('}', open + 1)
  const hashed = close > open + 1 ? key.slice(open + 1, close) : key
  return crc16(Buffer.from(hashed)) % SLOT_COUNT
}

const POLYNOMIAL = 0x1021

function crc16(bytes: Uint8Array): number {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = ((crc << 1) ^ (crc & 0x8000 ? POLYNOMIAL : 0)) & 0xffff
  }
  return crc
}
