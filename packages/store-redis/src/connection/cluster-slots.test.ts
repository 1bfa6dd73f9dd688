import { slotOf } from '@sluice/testing/servers'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { hashSlotOf } from './cluster-slots.ts'

it.each([
  ['123456789', 12739],
  ['', 0],
  ['{user1000}.following', slotOf('user1000')],
  ['foo{}{bar}', slotOf('foo{}{bar}')],
  ['foo{{bar}}zap', slotOf('{bar')],
])('the slot of %j is %i', (key, slot) => {
  expect(hashSlotOf(key)).toBe(slot)
})

it('the slot of any key is that of the cluster under test', () => {
  const key = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: fc.constantFrom('{', '}', 'a', 'é') }))
  fc.assert(
    fc.property(key, (text) => {
      expect(hashSlotOf(text)).toBe(slotOf(text))
    }),
  )
})
