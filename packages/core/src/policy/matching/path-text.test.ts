import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeText, ENCODED_BACKSLASH, ENCODED_SEMICOLON, ENCODED_SLASH, foldCase } from './path-text.ts'

const SPECIAL = /[\\/;]|[^\P{C}]/u

/** Text as it is found in paths: letters of several alphabets, no control characters, nothing that separates. */
const words = (): fc.Arbitrary<string> => fc.string({ unit: 'grapheme' }).filter((text) => !SPECIAL.test(text))

describe('decodeText', () => {
  it('undoes what encodeURIComponent does', () => {
    fc.assert(
      fc.property(words(), (text) => {
        expect(decodeText(encodeURIComponent(text), 'all')).toBe(text)
      }),
      { numRuns: 1000 },
    )
  })

  it('decodes once only', () => {
    fc.assert(
      fc.property(words(), (text) => {
        const once = encodeURIComponent(text)
        expect(decodeText(encodeURIComponent(once), 'all')).toBe(once)
      }),
    )
    expect(decodeText('%252f', 'all')).toBe('%2f')
  })

  it.each([
    ['nothing to decode', '/a b+c', '/a b+c'],
    ['digits of either case', '%6f%6F%c3%A9', 'ooé'],
    ['two, three and four bytes', '%c3%a9%e2%82%ac%f0%9f%98%80', 'é€😀'],
    ['not hexadecimal', '%zz%g1%1g%', '%zz%g1%1g%'],
    ['cut short', 'a%6', 'a%6'],
    ['a sequence cut short', '%e2%82x', '%e2%82x'],
    ['a sequence that does not go on', '%c3%29%e2%82%41', '%c3)%e2%82A'],
    ['what begins no sequence', '%f8%90%80%80', '%f8%90%80%80'],
    ['a lone continuation', '%80', '%80'],
    ['longer than needed', '%c0%af%e0%80%af', '%c0%af%e0%80%af'],
    ['a surrogate', '%ed%a0%80', '%ed%a0%80'],
    ['beyond the last code point', '%f4%90%80%80%f5%80%80%80', '%f4%90%80%80%f5%80%80%80'],
    ['goes on after what cannot be decoded', '%c0%61', '%c0a'],
    ['an encoded control character stays', 'a%00%0A%7f%c2%85', 'a%00%0A%7f%c2%85'],
    ['a bare control character becomes encoded', 'a\0\n\u007f\u0085', 'a%00%0A%7F%C2%85'],
    ['what stands for separators here is encoded', '\u0001%02\u0003', '%01%02%03'],
    ['a lone half of a pair stays', '\uD800x', '\uD800x'],
  ])('%s', (_title, text, expected) => {
    expect(decodeText(text, 'all')).toBe(expected)
  })

  it('marks encoded separators, which differ from bare ones and from text', () => {
    expect(decodeText('/%2f\\%5C;%3b%252f', 'all')).toBe(
      `/${ENCODED_SLASH}\\${ENCODED_BACKSLASH};${ENCODED_SEMICOLON}%2f`,
    )
  })

  it.each([
    ['what had to be encoded is decoded', '%20%22%3c%3f%23%25%5c%c3%a9', ' "<?#%\\é'],
    ['what had not is text', '%61%2F%3B%40%2e%7e', '%61%2F%3B%40%2e%7e'],
    ['control characters stay', '%00', '%00'],
  ])('as needed: %s', (_title, text, expected) => {
    expect(decodeText(text, 'needed')).toBe(expected)
  })
})

describe('foldCase', () => {
  it.each([
    ['ASCII', 'I/AbC', 'i/abc'],
    ['other alphabets', 'ÉΣЖ', 'éσж'],
    ['both forms of sigma', 'ας', foldCase('ΑΣ')],
    ['sharp s', 'STRASSE', foldCase('Straße')],
    ['the Kelvin sign', '\u212A', 'k'],
  ])('makes all cases one: %s', (_title, text, expected) => {
    expect(foldCase(text)).toBe(expected)
  })

  it('gives the same for any case of a string, and changes nothing more the second time', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const folded = foldCase(text)
        expect(foldCase(folded)).toBe(folded)
        expect(foldCase(text.toLowerCase())).toBe(folded)
      }),
      { numRuns: 1000 },
    )
  })
})
