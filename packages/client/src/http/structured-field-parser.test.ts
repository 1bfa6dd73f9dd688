import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseFieldList } from './structured-field-parser.ts'

/** Items as plain values. */
function plain(text: string): unknown {
  return parseFieldList(text)?.map(({ kind, text: value, parameters }) => [
    kind,
    value,
    Object.fromEntries([...parameters].map(([name, { kind: type, text: shown }]) => [name, `${type} ${shown}`])),
  ])
}

describe('a list of items', () => {
  it.each([
    ['', []],
    ['"a"', [['string', 'a', {}]]],
    [
      '"burst";r=5;t=10 , "daily";r=0',
      [
        ['string', 'burst', { r: 'integer 5', t: 'integer 10' }],
        ['string', 'daily', { r: 'integer 0' }],
      ],
    ],
    ['"a\\"b\\\\c"', [['string', 'a"b\\c', {}]]],
    ['"a";r=1;r=2', [['string', 'a', { r: 'integer 2' }]]],
    ['"a"; x; pk=:cHJvamVjdA==:', [['string', 'a', { x: 'other ?1', pk: 'other :cHJvamVjdA==:' }]]],
    [
      '"a";d=1.5;b=?0;n=-3;k=tok/en',
      [['string', 'a', { d: 'other 1.5', b: 'other ?0', n: 'integer -3', k: 'other tok/en' }]],
    ],
    [
      '@1659578233, %"f%c3%bc"',
      [
        ['other', '@1659578233', {}],
        ['other', '%"f%c3%bc"', {}],
      ],
    ],
  ])('such as %s is read', (text, items) => {
    expect(plain(text)).toEqual(items)
  })

  it.each([
    '"a',
    '"a",',
    ',"a"',
    '"a" "b"',
    '"a"r=1',
    '"a";R=1',
    '"a";r=',
    '"a";r=1234567890123456',
    '"a";r=1.2345',
    '("a" "b")',
    '"ä"',
    '"a\\n"',
    '"a"\n',
    'limit=10, remaining=5',
  ])('is not what %s is', (text) => {
    const isTrimmed = text.trim() !== text
    expect(plain(text)).toEqual(isTrimmed ? plain(text.trim()) : undefined)
  })

  it('gives names and numbers back as they were written', () => {
    const name = fc.string({ unit: fc.constantFrom(...'abc "\\%;,=09~') })
    const items = fc.array(fc.tuple(name, fc.nat()), { minLength: 1, maxLength: 5 })
    fc.assert(
      fc.property(items, (list) => {
        const text = list.map(([label, left]) => `"${label.replaceAll(/["\\]/g, '\\$&')}";r=${left}`).join(', ')
        expect(parseFieldList(text)?.map((item) => [item.text, Number(item.parameters.get('r')?.text)])).toEqual(list)
      }),
    )
  })

  it('never throws, and takes no longer than the text is long', () => {
    fc.assert(fc.property(fc.string({ maxLength: 200 }), (text) => void parseFieldList(text)))
    expect(parseFieldList('"'.repeat(50_000))).toBeUndefined()
  })
})
