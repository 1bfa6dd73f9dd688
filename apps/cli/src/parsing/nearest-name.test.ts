import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { editDistance, nearestName } from './nearest-name.ts'

describe('nearestName', () => {
  it.each([
    ['chek', ['check', 'keys'], 'check'],
    ['usr', ['user', 'url'], 'user'],
    ['TOP', ['top'], 'top'],
    ['x', ['check'], undefined],
    ['', ['check'], undefined],
    ['check', [], undefined],
  ])('of %j among %j is %j', (text, names, expected) => {
    expect(nearestName(text, names)).toBe(expected)
  })
})

describe('editDistance', () => {
  it.each([
    ['', '', 0],
    ['', 'abc', 3],
    ['abc', 'abc', 0],
    ['abc', 'abd', 1],
    ['abc', 'acb', 1],
    ['kitten', 'sitting', 3],
  ])('from %j to %j is %i', (one, other, distance) => {
    expect(editDistance(one, other)).toBe(distance)
  })

  it('is the same both ways, and at most the length of the longer', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 12 }), fc.string({ maxLength: 12 }), (one, other) => {
        const distance = editDistance(one, other)
        expect(distance).toBe(editDistance(other, one))
        expect(distance).toBeLessThanOrEqual(Math.max(one.length, other.length))
        expect(distance === 0).toBe(one === other)
      }),
    )
  })
})
