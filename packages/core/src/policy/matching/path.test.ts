import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { plainReading, readOddPath, readPath } from './path.ts'

/** Segments that need no second look. */
const plainSegments = (): fc.Arbitrary<string[]> =>
  fc
    .array(fc.string({ unit: fc.constantFrom(...'abz019-._~!$&\'()*+,=:@|^"<>{}`[]'), minLength: 1, maxLength: 6 }), {
      maxLength: 5,
    })
    .filter((segments) => segments.every((segment) => segment !== '.' && segment !== '..'))

const pieces = (): fc.Arbitrary<string> =>
  fc
    .array(
      fc.constantFrom(
        ...[
          '/',
          '/',
          '//',
          'a',
          'B',
          '.',
          '..',
          '%2e',
          '%2f',
          '%5C',
          '\\',
          ';',
          '%3b',
          ';x=1',
          '#',
          '?',
          '%61',
          '%20',
          '%',
        ],
        ...['é', '%c3%a9', '%00', '\n', '%252f', ':', '*', '\u0001', '\uD800'],
      ),
      { maxLength: 12 },
    )
    .map((parts) => parts.join(''))

describe('readPath', () => {
  it.each([
    ['the root', '/', '/'],
    ['a plain path', '/api/v1/orders/17', '/api/v1/orders/17'],
    ['capitals', '/API/Orders', '/api/orders'],
    ['a slash at the end', '/orders/', '/orders/'],
    ['a query', '/orders?id=/../x', '/orders'],
    ['a query right after a slash', '/orders/?x', '/orders/'],
    ['a query of the root', '/?x', '/'],
    ['names that begin with a dot', '/.well-known/.../x.', '/.well-known/.../x.'],
    ['a space that had to be encoded', '/a%20b', '/a b'],
    ['a bare space', '/a b', '/a b'],
    ['other alphabets, encoded', '/caf%C3%A9/%d0%96', '/café/ж'],
    ['other alphabets, bare', '/É/Σ', '/é/σ'],
    ['an encoded percent sign: decoded once', '/%252f', '/%2f'],
    ['what is not UTF-8', '/%C0%AF', '/%c0%af'],
    ['half a sequence', '/100%', '/100%'],
    ['a control character, encoded', '/a%0Ab', '/a%0ab'],
    ['a control character, bare', '/a\nb', '/a%0ab'],
    ['the last control character, bare', '/a\u007f', '/a%7f'],
    ['an encoded query sign is text', '/a%3Fb', '/a?b'],
    ['a whole URL', 'http://host/Orders/?x', '/orders/'],
    ['a whole URL without a path', 'https://user@host:80?x', '/'],
    ['a whole URL with an address', 'http://a:b@[::1]:8080/a%20b', '/a b'],
    ['a name', 'Checkout', 'checkout'],
    ['a name that looks like a path later on', 'Grpc.Orders/Get//x?y%20', 'grpc.orders/get//x?y%20'],
    ['everything, as OPTIONS has it', '*', '*'],
    ['nothing', '', ''],
  ])('has one reading: %s', (_title, resource, reading) => {
    expect(readPath(resource)).toEqual([reading])
  })

  it.each([
    ['an encoded slash', '/a%2fb', ['/a/b', '/a%2fb']],
    ['an encoded slash at the end', '/orders%2F', ['/orders/', '/orders%2f']],
    ['a backslash', '/a\\b', ['/a/b', '/a\\b']],
    ['an encoded backslash', '/a%5Cb', ['/a/b', '/a\\b']],
    ['an encoded slash and a backslash', '/a%2fb\\c', ['/a/b/c', '/a/b\\c', '/a%2fb/c', '/a%2fb\\c']],
    ['parameters of a segment', '/orders;v=1', ['/orders', '/orders;v=1']],
    ['a segment of parameters only', '/files/;x', ['/files/', '/files/;x']],
    ['an encoded semicolon', '/orders%3bx', ['/orders', '/orders;x', '/orders%3bx']],
    ['parameters with an encoded slash', '/a;x%2fb', ['/a/b', '/a', '/a;x/b', '/a;x%2fb']],
    ['two dots', '/a/../b', ['/b', '/a/../b']],
    ['one dot', '/a/./b', ['/a/b', '/a/./b']],
    ['dots at the end', '/a/b/..', ['/a/', '/a/b/..']],
    ['a dot at the end', '/a/.', ['/a/', '/a/.']],
    ['dots above the root', '/../../a', ['/a', '/../../a']],
    ['dots to the root', '/a/..', ['/', '/a/..']],
    ['encoded dots', '/a/%2e%2E/b', ['/b', '/a/../b', '/a/%2e%2e/b']],
    ['dots between encoded slashes', '/a%2f..%2fb', ['/b', '/a/../b', '/a%2f..%2fb']],
    ['parameters before dots', '/a;x=1/../b', ['/b', '/a/../b', '/a;x=1/../b', '/a']],
    ['parameters after dots', '/a/..;/b', ['/b', '/a/../b', '/a/..;/b', '/', '/a/..']],
    ['two slashes', '/a//b', ['/a/b', '/a//b']],
    ['two slashes at the end', '/a//', ['/a/', '/a//']],
    ['slashes only', '///', ['/', '///']],
    ['two slashes before dots', '/a//../b', ['/b', '/a/b', '/a/../b', '/a//../b']],
    ['three slashes before dots', '/a///../b', ['/b', '/a/b', '/a//b', '/a/../b', '/a///../b']],
    ['two slashes first: perhaps a host', '//host/a', ['/host/a', '/a', '//host/a']],
    ['a slash and a backslash first', '/\\host/a', ['/host/a', '//host/a', '/\\host/a', '/a']],
    ['a fragment', '/a#b', ['/a', '/a#b']],
    ['an encoded slash and a fragment', '/a%2fb#c', ['/a/b', '/a%2fb', '/a/b#c', '/a%2fb#c']],
    ['a query in a fragment', '/a/#b?c', ['/a/', '/a/#b']],
    ['letters that were encoded without need', '/%6frder%73', ['/orders', '/%6frder%73']],
    ['an odd host', 'http://h;x/a', ['/a', '/', '/;x/a', '//a']],
    ['no host, or one after more slashes', 'http:///h/a', ['/h/a', '/a']],
    ['a port that is no number', 'http://u@h:8x/a', ['/a', '/:8x/a']],
    ['a slash in the query of a URL without a path', 'http://h?x/a', ['/', '/a']],
    ['a whole URL with its scheme in capitals', 'HTTP://h/a', ['/a', '/ttp:/h/a', '/ttp://h/a']],
    ['a whole URL of another scheme', 'wss://h/a', ['/a', '/ss:/h/a', '/ss://h/a']],
  ])('has several readings where servers differ: %s', (_title, resource, readings) => {
    expect([...readPath(resource)].sort()).toEqual([...readings].sort())
    // The one that goes furthest comes first.
    expect(readPath(resource)[0]).toBe(readings[0])
  })

  it('leaves a path that is plain as it is', () => {
    fc.assert(
      fc.property(plainSegments(), (segments) => {
        const path = `/${segments.join('/')}`
        expect(readPath(path)).toEqual([path])
        expect(readPath(path.toUpperCase())).toEqual([path])
      }),
    )
  })

  it('reads a plain path in the same way with and without a second look', () => {
    fc.assert(
      fc.property(pieces(), (text) => {
        const plain = plainReading(`/${text}`)
        if (plain !== undefined) expect(readOddPath(`/${text}`)).toEqual([plain])
      }),
      { numRuns: 5000 },
    )
  })

  it('finds the path in every spelling of it, first', () => {
    const spellings = plainSegments().chain((segments) =>
      fc.record({
        path: fc.constant(`/${segments.join('/')}`),
        spelled: fc.tuple(...segments.map(spellingsOf)).map((parts) => parts.join('').replace(/^(?!\/)/, '/')),
        end: fc.constantFrom('', '/', '//', ';', ';a=b', '/;a', '/.', '/a/..', '?q', '#f', '%2f', '%5C', '\\'),
      }),
    )
    fc.assert(
      fc.property(spellings, ({ path, spelled, end }) => {
        expect(readPath(spelled + end)[0]!.replace(/(?<=.)\/$/, '')).toBe(path)
      }),
      { numRuns: 2000 },
    )
  })

  it('gives few readings, all of one form, none twice', () => {
    fc.assert(
      fc.property(pieces(), (text) => {
        const readings = readPath(`/${text}`)
        expect(readings.length).toBeLessThanOrEqual(71)
        expect(new Set(readings).size).toBe(readings.length)
        // Some keep empty segments, the first one does not.
        expect(readings[0]).not.toContain('//')
        for (const reading of readings) expect(reading).toMatch(/^\/[^A-Z]*$/)
      }),
      { numRuns: 5000 },
    )
  })

  it.each([
    ['letters', 'a'],
    ['slashes', '/'],
    ['segments', '/a'],
    ['dots', '/..'],
    ['segments and dots', '/a/..//.'],
    ['percent signs', '%'],
    ['beginnings of sequences', '%e2%82'],
    ['encoded slashes', '%2f'],
    ['backslashes', '\\'],
    ['semicolons', ';'],
    ['encoded semicolons and slashes', '%3b%2f'],
    ['fragments', '#'],
    ['dots in a row', '.'],
    ['letters of other alphabets', 'Σ'],
  ])('reads a path of a megabyte: %s', (_title, piece) => {
    const path = `/${piece.repeat(1_000_000 / piece.length)}`
    for (const reading of readPath(path)) expect(reading.startsWith('/')).toBe(true)
  })

  it.each(['x', 'x:', 'x:/'])('reads a megabyte after %s', (begin) => {
    expect(readPath(begin + 'a:@.'.repeat(250_000)).length).toBe(1)
  })

  it.each(['http://', 'http://@', 'x://', 'x:///'])('reads a megabyte of a host after %s', (begin) => {
    for (const piece of ['a', ':', '@', 'a:@.', '[', '\\', '?', ':1']) {
      const readings = readPath(begin + piece.repeat(1_000_000 / piece.length))
      expect(readings.length).toBeLessThanOrEqual(6 * 71)
      for (const reading of readings) expect(reading.startsWith('/')).toBe(true)
    }
  })
})

/** A segment with the slash before it, spelled so that it means the same. */
function spellingsOf(segment: string): fc.Arbitrary<string> {
  const letters = [...segment].map((letter) => {
    const code = letter.charCodeAt(0).toString(16)
    return fc.constantFrom(letter, letter, letter.toUpperCase(), `%${code}`, `%${code.toUpperCase()}`)
  })
  const slash = fc.constantFrom(
    '/',
    '/',
    '//',
    '/./',
    '/x/../',
    '%2f',
    '\\',
    '/;x/',
    '/%2e/',
    '/a/b/%2E./../',
    '/x;y/..;z/',
  )
  return fc
    .tuple(slash, fc.tuple(...letters), fc.constantFrom('', '', ';', ';a=b;c'))
    .map(([before, text, params]) => before + text.join('') + params)
}
