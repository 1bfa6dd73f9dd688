import fc from 'fast-check'
import { parseItem } from 'structured-headers'
import { describe, expect, it } from 'vitest'
import { fieldBytes, fieldInteger, fieldString } from './rate-limit-fields.ts'

function bareItem(text: string): unknown {
  const [value, parameters] = parseItem(text)
  expect(parameters.size).toBe(0)
  return value
}

describe('fieldInteger', () => {
  it.each([
    [0, '0'],
    [1.9, '1'],
    [-1, '0'],
    [Number.NaN, '0'],
    [999_999_999_999_999, '999999999999999'],
    [1e15, '999999999999999'],
    [1e22, '999999999999999'],
    [Number.POSITIVE_INFINITY, '999999999999999'],
  ])('writes %d as %s', (value, text) => expect(fieldInteger(value)).toBe(text))

  it('property: is an Integer that a parser of structured fields reads, and never above the truth', () => {
    fc.assert(
      fc.property(fc.double(), (value) => {
        const read = bareItem(fieldInteger(value)) as number
        expect(Number.isInteger(read)).toBe(true)
        expect(read).toBeLessThanOrEqual(Math.max(0, Number.isNaN(value) ? 0 : value))
      }),
    )
  })
})

describe('fieldString', () => {
  it.each([
    ['orders', '"orders"'],
    ['GET:/orders/:id@user', '"GET:/orders/:id@user"'],
    ['a "b" \\c', String.raw`"a \"b\" \\c"`],
    ['100%', '"100%25"'],
    ['Zoë', '"Zo%C3%AB"'],
    ['🦊', '"%F0%9F%A6%8A"'],
    ['a\r\nSet-Cookie: b', '"a%0D%0ASet-Cookie: b"'],
    ['\ud800', '"%EF%BF%BD"'],
    ['', '""'],
  ])('writes %j as %s', (text, written) => expect(fieldString(text)).toBe(written))

  it('property: a parser of structured fields reads back the text, percent-encoded where it must be', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 256 }), (text) => {
        const written = fieldString(text)
        expect(written).toMatch(/^[ -~]+$/)
        expect(decodeURIComponent(bareItem(written) as string)).toBe(text.toWellFormed())
      }),
    )
  })

  it('cuts what is too long', () => {
    expect(fieldString('x'.repeat(1_000_000))).toBe(`"${'x'.repeat(256)}"`)
    expect(bareItem(fieldString(`${'x'.repeat(255)}🦊`))).toBe(`${'x'.repeat(255)}%EF%BF%BD`)
  })
})

describe('fieldBytes', () => {
  it('property: a parser of structured fields reads back the bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        expect([...new Uint8Array(bareItem(fieldBytes(bytes)) as ArrayBuffer)]).toEqual([...bytes])
      }),
    )
  })
})
