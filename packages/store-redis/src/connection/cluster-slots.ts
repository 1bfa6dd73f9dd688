import type { RedisConnection } from './connection.ts'

/** Hash slots of a Redis cluster. */
export const SLOT_COUNT = 16_384

const POLYNOMIAL = 0x1021

/** The CRC-16 (XMODEM) of every single byte. */
const CRC_TABLE: Uint16Array = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = (crc << 1) ^ (crc & 0x8000 ? POLYNOMIAL : 0)
  return crc
})

/** The hash slot of a key, 0 to 16,383. If the key has a hash tag, only the tag counts. */
export function hashSlotOf(key: string): number {
  const open = key.indexOf('{')
  const close = open < 0 ? -1 : key.indexOf('}', open + 1)
  const hashed = close > open + 1 ? key.slice(open + 1, close) : key
  let crc = 0
  for (const byte of Buffer.from(hashed)) crc = ((crc << 8) & 0xffff) ^ CRC_TABLE[(crc >> 8) ^ byte]!
  return crc % SLOT_COUNT
}

/** Consecutive slots served by one primary. */
export interface SlotRange {
  readonly first: number
  readonly last: number
  /** `host:port`. */
  readonly primary: string
}

/** An entry of the reply to CLUSTER SLOTS: first slot, last slot, and the nodes, primary first. */
type SlotEntry = readonly [first: number, last: number, primary: readonly [host: Buffer, port: number], ...unknown[]]

/** Which primary serves which slots, according to any node of the cluster. */
export async function slotRanges(send: RedisConnection['send']): Promise<readonly SlotRange[]> {
  const entries = (await send(['CLUSTER', 'SLOTS'], '')) as readonly SlotEntry[]
  return entries.map(([first, last, [host, port]]) => ({ first, last, primary: `${String(host)}:${port}` }))
}

/**
 * One key per primary, in a slot of that primary: a script called with the key runs there. The keys start with the
 * prefix, so a user restricted to the prefix may use them. A standalone server has one.
 */
export async function primaryRoutingKeys(
  send: RedisConnection['send'],
  { isCluster, prefix }: { readonly isCluster: boolean; readonly prefix: string },
): Promise<readonly string[]> {
  const candidate = (number: number): string => `${prefix}:{${number}}`
  if (!isCluster) return [candidate(0)]
  const ranges = await slotRanges(send)
  const missing = new Set(new Map(ranges.map(({ primary, first }) => [primary, first])).values())
  const keys: string[] = []
  for (let number = 0; missing.size > 0; number++) {
    const key = candidate(number)
    if (missing.delete(hashSlotOf(key))) keys.push(key)
  }
  return keys
}
