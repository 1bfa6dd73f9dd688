import { requireInteger } from './option-range.ts'
import { describeValue, RuntimeError } from './runtime-error.ts'

/** The instant that ids count from, 2010-11-04T00:00:00Z, in milliseconds since 1970. */
export const SNOWFLAKE_EPOCH_MS = 1_288_828_800_000

/** The greatest number of milliseconds since {@link SNOWFLAKE_EPOCH_MS} that 41 bits hold; reached in July 2080. */
export const MAX_SNOWFLAKE_MS: number = 2 ** 41 - 1

/** The greatest datacenter number, and the greatest machine number: 5 bits each. */
export const MAX_NODE_PART = 31

/** The greatest sequence number within one millisecond: 12 bits. */
export const MAX_SEQUENCE = 4095

const MAX_ID = 2n ** 63n - 1n
const DECIMAL_ID = /^\d{1,19}$/

/** What an id is made of. */
export interface SnowflakeParts {
  /** When it was made: whole milliseconds since 1970, not before {@link SNOWFLAKE_EPOCH_MS}. */
  readonly timestampMs: number
  /** 0 to 31. */
  readonly datacenter: number
  /** 0 to 31. */
  readonly machine: number
  /** Its number within that millisecond, 0 to 4095. */
  readonly sequence: number
}

// An id is written and read as two halves of 32 bits, by ordinary numbers: arithmetic on bigint costs an allocation for
// every field.
//
//   upper half: sign 0, then the first 31 bits of the milliseconds
//   lower half: their last 10 bits, datacenter 5, machine 5, sequence 12

/** Which 32-bit half of a 64-bit element holds its lower and its upper bits on this machine. */
export const LOW: 0 | 1 = new Uint32Array(BigUint64Array.of(1n).buffer)[0] === 1 ? 0 : 1
export const HIGH: 0 | 1 = LOW === 0 ? 1 : 0

/** The upper half of an id made `ms` milliseconds after the epoch. */
export function packHigh(ms: number): number {
  return Math.floor(ms / 1024)
}

/** The lower half of an id as a signed 32-bit number; `ms` counts from the epoch. */
export function packLow(parts: { ms: number; datacenter: number; machine: number; sequence: number }): number {
  return ((parts.ms % 1024) << 22) | (parts.datacenter << 17) | (parts.machine << 12) | parts.sequence
}

/** The id with these parts. Throws `SLUICE_RUNTIME_INVALID_OPTION` when one is out of its range. */
export function encodeSnowflake(parts: SnowflakeParts): bigint {
  const { timestampMs, datacenter, machine, sequence } = parts
  const last = SNOWFLAKE_EPOCH_MS + MAX_SNOWFLAKE_MS
  requireInteger('timestampMs', timestampMs, { min: SNOWFLAKE_EPOCH_MS, max: last })
  requireInteger('datacenter', datacenter, { min: 0, max: MAX_NODE_PART })
  requireInteger('machine', machine, { min: 0, max: MAX_NODE_PART })
  requireInteger('sequence', sequence, { min: 0, max: MAX_SEQUENCE })
  const ms = timestampMs - SNOWFLAKE_EPOCH_MS
  const id = new BigUint64Array(1)
  const halves = new Uint32Array(id.buffer)
  halves[HIGH] = packHigh(ms)
  halves[LOW] = packLow({ ms, datacenter, machine, sequence })
  return id[0] as bigint
}

/**
 * The parts of an id, given as a bigint or in decimal digits. The opposite of {@link encodeSnowflake}: any number from
 * 0 to 2^63 - 1 has parts. Throws `SLUICE_RUNTIME_INVALID_ID` for anything else.
 */
export function decodeSnowflake(id: bigint | string): SnowflakeParts {
  const halves = new Uint32Array(BigUint64Array.of(requireId(id)).buffer)
  const high = halves[HIGH] as number
  const low = halves[LOW] as number
  return {
    timestampMs: SNOWFLAKE_EPOCH_MS + high * 1024 + (low >>> 22),
    datacenter: (low >>> 17) & MAX_NODE_PART,
    machine: (low >>> 12) & MAX_NODE_PART,
    sequence: low & MAX_SEQUENCE,
  }
}

function requireId(id: bigint | string): bigint {
  const value = typeof id === 'string' && DECIMAL_ID.test(id) ? BigInt(id) : id
  if (typeof value === 'bigint' && value >= 0n && value <= MAX_ID) return value
  throw new RuntimeError('SLUICE_RUNTIME_INVALID_ID', {
    received: describeValue(id),
    expected: 'a bigint or decimal digits from 0 to 2^63 - 1',
    action: 'Pass the id as it was made; a number of JavaScript has already lost its last digits.',
  })
}
