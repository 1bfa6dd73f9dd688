import { describe, expect, it } from 'vitest'
import { isTooDeep, oversizedPart } from './request-body.ts'

function objectOf(count: number): object {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`m${index}`, index]))
}

describe('a body', () => {
  it.each([undefined, null, 1, 'text', [], {}, { a: [{ b: objectOf(1000) }] }, [Array.from({ length: 100_000 })]])(
    'of a size that forms have room for is none (%#)',
    (body) => {
      expect(oversizedPart(body)).toBeUndefined()
    },
  )

  it('with too many members is reported with their path', () => {
    expect(oversizedPart(objectOf(1001))).toEqual({
      path: '',
      received: 'an object of 1001',
      expected: 'an object of at most 1000',
    })
    expect(oversizedPart({ 'a/b': [1, { '~': objectOf(2000) }] })?.path).toBe('/a~1b/1/~0')
  })

  it('with too many entries is reported with their path', () => {
    const list = Array.from({ length: 100_001 }, () => 1)
    expect(oversizedPart({ rules: list })).toEqual({
      path: '/rules',
      received: 'a list of 100001',
      expected: 'a list of at most 100000',
    })
  })

  it('that is nested without end is left to others', () => {
    let deep: unknown = objectOf(2000)
    for (let level = 0; level < 70; level++) deep = [deep]
    expect(oversizedPart(deep)).toBeUndefined()
  })
})

describe('the text of a body', () => {
  const nested = (depth: number): string => '[{"a":'.repeat(depth / 2) + '}]'.repeat(depth / 2)

  it.each([
    ['as deep as forms may be', nested(64), false],
    ['deeper', nested(66), true],
    ['deep, and never closed', '['.repeat(65), true],
    ['wide', `[${'[],{},'.repeat(1000)}1]`, false],
    [
      'with brackets in strings',
      JSON.stringify(['['.repeat(100), '\\"['.repeat(100), { '[{"': '\\'.repeat(99) }]),
      false,
    ],
    ['deep behind a string', `{"a\\"":"\\\\",${JSON.stringify('x"')}:${'['.repeat(70)}`, true],
    ['with a string that does not end', `"${'['.repeat(100)}\\`, false],
    ['of nothing', '', false],
  ])('%s', (_, text, expected) => {
    expect(isTooDeep(Buffer.from(text))).toBe(expected)
  })
})
