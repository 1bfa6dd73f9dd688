import { describe, expect, it } from 'vitest'
import { slotOf } from './slot-migration.ts'

describe('slotOf', () => {
  it.each([
    // The check value of CRC-16/XMODEM, 0x31c3, is below 16 384.
    ['123456789', 0x31c3],
    ['', 0],
    ['foo', 12_182],
    ['{foo}', 12_182],
    ['before{foo}after{bar}', 12_182],
  ])('of %j is %i', (key, slot) => {
    expect(slotOf(key)).toBe(slot)
  })

  it('takes the whole key when there is nothing between the first braces, or only one of them', () => {
    expect(slotOf('{}{foo}')).not.toBe(slotOf('foo'))
    expect(slotOf('{foo')).not.toBe(slotOf('foo'))
    expect(slotOf('}{foo}')).toBe(slotOf('foo'))
    expect(slotOf('{{foo}')).toBe(slotOf('{foo'))
  })
})
