import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { SnowflakeParts } from './snowflake-id.ts'
import { decodeSnowflake, encodeSnowflake, SNOWFLAKE_EPOCH_MS } from './snowflake-id.ts'

const LAST_MS = SNOWFLAKE_EPOCH_MS + 2 ** 41 - 1
const ZERO: SnowflakeParts = { timestampMs: SNOWFLAKE_EPOCH_MS, datacenter: 0, machine: 0, sequence: 0 }
const MAX: SnowflakeParts = { timestampMs: LAST_MS, datacenter: 31, machine: 31, sequence: 4095 }

const anyParts = fc.record({
  timestampMs: fc.integer({ min: SNOWFLAKE_EPOCH_MS, max: LAST_MS }),
  datacenter: fc.nat({ max: 31 }),
  machine: fc.nat({ max: 31 }),
  sequence: fc.nat({ max: 4095 }),
})

describe('snowflake ids', () => {
  it('count from 2010-11-04T00:00:00Z', () => {
    expect(new Date(SNOWFLAKE_EPOCH_MS).toISOString()).toBe('2010-11-04T00:00:00.000Z')
  })

  it.each([
    { parts: ZERO, id: 0n },
    { parts: { ...ZERO, sequence: 1 }, id: 1n },
    { parts: { ...ZERO, sequence: 4095 }, id: 4_095n },
    { parts: { ...ZERO, machine: 1 }, id: 1n << 12n },
    { parts: { ...ZERO, datacenter: 1 }, id: 1n << 17n },
    { parts: { ...ZERO, timestampMs: SNOWFLAKE_EPOCH_MS + 1 }, id: 1n << 22n },
    { parts: { ...ZERO, timestampMs: SNOWFLAKE_EPOCH_MS + 50 }, id: 50n << 22n },
    { parts: { ...ZERO, timestampMs: SNOWFLAKE_EPOCH_MS + 1023 }, id: 1_023n << 22n },
    { parts: { ...ZERO, timestampMs: SNOWFLAKE_EPOCH_MS + 1024 }, id: 1_024n << 22n },
    { parts: MAX, id: 2n ** 63n - 1n },
  ])('$id', ({ parts, id }) => {
    expect(encodeSnowflake(parts)).toBe(id)
    expect(decodeSnowflake(id)).toEqual(parts)
    expect(decodeSnowflake(id.toString())).toEqual(parts)
  })

  it('have each part in its bits, and give them back (property)', () => {
    fc.assert(
      fc.property(anyParts, (parts) => {
        const id = encodeSnowflake(parts)
        const ms = BigInt(parts.timestampMs - SNOWFLAKE_EPOCH_MS)
        const node = (BigInt(parts.datacenter) << 5n) | BigInt(parts.machine)
        expect(id).toBe((ms << 22n) | (node << 12n) | BigInt(parts.sequence))
        expect(decodeSnowflake(id)).toEqual(parts)
      }),
    )
  })

  it('of any 63 bits can be read and written again (property)', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }), (id) => {
        expect(encodeSnowflake(decodeSnowflake(id.toString()))).toBe(id)
      }),
    )
  })

  it.each([
    { timestampMs: SNOWFLAKE_EPOCH_MS - 1 },
    { timestampMs: LAST_MS + 1 },
    { timestampMs: SNOWFLAKE_EPOCH_MS + 0.5 },
    { datacenter: 32 },
    { datacenter: -1 },
    { machine: 32 },
    { machine: Number.NaN },
    { sequence: 4096 },
    { sequence: -1 },
  ])('reject the part %o', (part) => {
    expect(() => encodeSnowflake({ ...ZERO, ...part })).toThrow(
      expect.objectContaining({ code: 'SLUICE_RUNTIME_INVALID_OPTION' }),
    )
  })

  it.each([-1n, 2n ** 63n, '9223372036854775808', '', '-1', '0x10', ' 1', '1e3', '1.5', '00000000000000000000'])(
    'are not read from %o',
    (id) => {
      expect(() => decodeSnowflake(id)).toThrow(expect.objectContaining({ code: 'SLUICE_RUNTIME_INVALID_ID' }))
    },
  )

  it('are not read from a number, which may have been rounded', () => {
    expect(() => decodeSnowflake(12_345 as unknown as bigint)).toThrow(
      expect.objectContaining({ code: 'SLUICE_RUNTIME_INVALID_ID' }),
    )
  })
})
