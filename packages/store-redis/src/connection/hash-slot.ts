const SLOT_COUNT = 16_384
const POLYNOMIAL = 0x1021

/** What one byte adds to a CRC-16 (XMODEM). */
const STEPS: Uint16Array = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = (crc << 1) ^ (crc & 0x8000 ? POLYNOMIAL : 0)
  return crc
})

/** The slot of a cluster that a key lies in, from 0 to 16 383, by what its hash tag holds. */
export function hashSlotOf(key: string): number {
  const open = key.indexOf('{')
  const close = open < 0 ? -1 : key.indexOf('}', open + 1)
  const hashed = close > open + 1 ? key.slice(open + 1, close) : key
  let crc = 0
  for (const byte of Buffer.from(hashed)) crc = ((crc << 8) & 0xffff) ^ STEPS[(crc >> 8) ^ byte]!
  return crc % SLOT_COUNT
}
