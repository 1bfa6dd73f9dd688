import { describe, expect, it } from 'vitest'
import { facts, instantText, table } from './text.ts'

describe('table', () => {
  it('has columns as wide as they need to be', () => {
    expect(
      table(
        ['name', 'count'],
        [
          ['a', '1'],
          ['longer', '20'],
        ],
      ),
    ).toBe('NAME    COUNT\na       1\nlonger  20')
  })

  it('keeps each row on its line', () => {
    expect(table(['a', 'b'], [['x\ny', 'z\r\n']])).toBe('A    B\nx y  z')
  })

  it('says so when it is empty', () => {
    expect(table(['a'], [])).toBe('none')
  })
})

describe('facts', () => {
  it('leaves out what is not known', () => {
    expect(
      facts([
        ['a', 1],
        ['long name', 'x'],
        ['b', undefined],
      ]),
    ).toBe('a          1\nlong name  x')
  })
})

describe('instantText', () => {
  it('is in UTC', () => {
    expect(instantText(Date.UTC(2027, 0, 1, 12, 30, 15, 999))).toBe('2027-01-01T12:30:15Z')
    expect(instantText(0)).toBe('-')
    expect(instantText(undefined)).toBe('-')
  })
})
