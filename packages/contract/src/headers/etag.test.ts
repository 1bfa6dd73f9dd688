import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { etagOf, expectedRevision } from './etag.ts'

describe('an ETag', () => {
  it('property: says the revision it was made of', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 999_999_999_999_999 }), (revision) => {
        expect(etagOf(revision)).toMatch(/^"\d+"$/)
        expect(expectedRevision(etagOf(revision))).toBe(revision)
      }),
    )
  })

  it('may be any, and may have spaces around it', () => {
    expect([expectedRevision('*'), expectedRevision(' "7" ')]).toEqual(['any', 7])
  })

  it.each(['', '7', '""', '"07"', '"-1"', '"1.5"', 'W/"7"', '"7", "8"', '"9007199254740993"', '"x"'])(
    'is not understood as %s',
    (value) => expect(expectedRevision(value)).toBe('unknown'),
  )
})
