import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ResourcePattern, Specific } from './resource-pattern.ts'
import { canonicalPattern, compareSpecificity, explainPattern, ownsSlash, parsePattern } from './resource-pattern.ts'

function understood(text: string): ResourcePattern {
  const pattern = parsePattern(text)
  if ('problem' in pattern) throw new Error(`${text}: ${pattern.problem}`)
  return pattern
}

const patterns = (): fc.Arbitrary<string> =>
  fc
    .tuple(
      fc.array(
        fc.constantFrom('a', 'B', 'é', ':id', ':other', '*', '%3Ax', '%2a', '100%25', '%7bx', '%3b', '...', '%00'),
        {
          maxLength: 4,
        },
      ),
      fc.constantFrom('', '/', '/*'),
    )
    .map(([segments, end]) => segments.map((segment) => `/${segment}`).join('') + end || '/')

describe('parsePattern', () => {
  it.each([
    ['everything', '*', { kind: 'all', segments: [], hasRest: true, canonical: '*' }],
    ['the root', '/', { kind: 'path', segments: [], hasRest: false, canonical: '/' }],
    ['all paths', '/*', { kind: 'path', segments: [], hasRest: true, canonical: '/*' }],
    ['a literal', '/api/v1', { kind: 'path', segments: ['api', 'v1'], hasRest: false, canonical: '/api/v1' }],
    ['a parameter', '/a/:id/b', { kind: 'path', segments: ['a', undefined, 'b'], canonical: '/a/:any/b' }],
    ['a star for one segment', '/a/*/b', { kind: 'path', segments: ['a', undefined, 'b'], hasRest: false }],
    ['a rest', '/files/*', { kind: 'path', segments: ['files'], hasRest: true, canonical: '/files/*' }],
    ['a parameter and a rest', '/:x/*', { kind: 'path', segments: [undefined], hasRest: true, canonical: '/:any/*' }],
    ['two stars at the end', '/a/*/*', { kind: 'path', segments: ['a', undefined], hasRest: true }],
    ['other spellings', '/API//Orders/', { kind: 'path', segments: ['api', 'orders'], canonical: '/api/orders' }],
    ['encoded letters', '/%6Frders', { segments: ['orders'], canonical: '/orders' }],
    ['other alphabets', '/CAF%C3%89', { segments: ['café'], canonical: '/café' }],
    ['a colon inside', '/users:batch', { segments: ['users:batch'], canonical: '/users:batch' }],
    ['encoded signs are characters', '/%3aid/%2A', { segments: [':id', '*'], canonical: '/%3aid/%2a' }],
    ['an encoded semicolon', '/a%3Bb', { segments: ['a;b'], canonical: '/a%3bb' }],
    ['a name', 'Checkout', { kind: 'name', segments: ['checkout'], hasRest: false, canonical: 'checkout' }],
    ['a name with signs', 'grpc:Orders?%20', { kind: 'name', segments: ['grpc:orders?%20'] }],
  ])('understands %s', (_title, text, expected) => {
    expect(parsePattern(text)).toMatchObject(expected)
  })

  it.each([
    ['nothing', '', 'it is empty; write "*" for everything'],
    ['two stars', '/a/**', 'the segment "**" has "**"'],
    ['two stars in the middle', '/**/a', 'the segment "**" has "**"'],
    ['a star inside a segment', '/a*b', 'the segment "a*b" has a "*" inside'],
    ['a star after a parameter', '/:id*', 'the segment ":id*" has a "*" inside'],
    ['a star in a name', 'check*', 'a "*" stands inside a name'],
    ['a parameter without a name', '/a/:/b', 'the segment ":" is no parameter'],
    ['a parameter with something after it', '/:id.json', 'the segment ":id.json" is no parameter'],
    ['a parameter with an expression', '/:id(\\d+)', 'is no parameter'],
    ['a parameter that is no path', ':id', 'a parameter is a segment of a path'],
    ['braces', '/{id}', 'the segment "{id}" has a brace; write ":name"'],
    ['a query', '/a?b=c', 'it has a query or a fragment'],
    ['a fragment', '/a#b', 'it has a query or a fragment'],
    ['an encoded slash', '/a%2Fb', 'the segment "a%2Fb" has an encoded slash or backslash'],
    ['an encoded backslash', '/a%5cb', 'has an encoded slash or backslash'],
    ['a backslash', '/a\\b', 'has a backslash; write "/"'],
    ['parameters of a segment', '/a;b', 'has parameters after a ";"'],
    ['dots', '/a/../b', 'the segment ".." leads elsewhere'],
    ['an encoded dot', '/a/%2E', 'the segment "%2E" leads elsewhere'],
    ['a path without its first slash', 'orders/:id', 'it has a slash and does not begin with one'],
    ['a whole URL', 'http://host/orders', 'it has a slash and does not begin with one'],
    ['a very long text', `/${'a'.repeat(2048)}`, 'it is longer than 2048 characters'],
  ])('says what is wrong with %s', (_title, text, problem) => {
    expect(parsePattern(text)).toEqual({ problem: expect.stringContaining(problem) })
  })

  it('shows a long or broken segment on one short line', () => {
    const pattern = parsePattern(`/\n${'x'.repeat(1000)}*`)
    expect('problem' in pattern && pattern.problem.length).toBeLessThan(200)
    expect('problem' in pattern && pattern.problem).not.toContain('\n')
  })
})

describe('canonicalPattern', () => {
  it.each([
    ['names of parameters', '/orders/:id', '/orders/:orderNumber'],
    ['a star and a parameter', '/a/*/b', '/a/:x/b'],
    ['case and slashes', '/API//Orders/', '/api/orders'],
    ['encoded letters', '/%61', '/a'],
    ['a bare and an encoded percent sign', '/100%', '/100%25'],
    ['the case of a name', 'CheckOut', 'checkout'],
  ])('is the same for patterns that match the same: %s', (_title, one, other) => {
    expect(canonicalPattern(one)).toBe(canonicalPattern(other))
  })

  it.each([
    ['a parameter and a rest', '/a/:x', '/a/*'],
    ['a literal and a parameter', '/a/x', '/a/:x'],
    ['a literal that looks like a parameter', '/a/%3aany', '/a/:any'],
    ['a literal that looks like a rest', '/a/%2a', '/a/*'],
    ['a string that looks encoded', '/%2561', '/a'],
    ['everything and all paths', '*', '/*'],
    ['a name and a path', 'a', '/a'],
  ])('differs for patterns that do not: %s', (_title, one, other) => {
    expect(canonicalPattern(one)).not.toBe(canonicalPattern(other))
  })

  it('is a pattern that means the same, and its own canonical spelling', () => {
    fc.assert(
      fc.property(patterns(), (text) => {
        const pattern = understood(text)
        expect(parsePattern(pattern.canonical)).toEqual(pattern)
      }),
      { numRuns: 1000 },
    )
  })

  it('gives back what is no pattern', () => {
    expect(canonicalPattern('/A**')).toBe('/A**')
  })
})

describe('ownsSlash', () => {
  it.each(['/', '/orders/', '/orders/:id/', '/orders//'])('is true for %s', (pattern) => {
    expect(ownsSlash(pattern)).toBe(true)
    expect(canonicalPattern(pattern)).toBe(canonicalPattern(pattern.replace(/(?<=.)\/+$/, '')))
  })

  it.each(['*', '/*', '/orders', '/orders/*', '/orders/:id', 'name', 'name/'])('is false for %s', (pattern) => {
    expect(ownsSlash(pattern)).toBe(false)
  })
})

describe('compareSpecificity', () => {
  const compare = (
    one: string | readonly [string, readonly string[]],
    other: string | readonly [string, readonly string[]],
  ): number => {
    const [specific, than] = [one, other].map((use): Specific => {
      const [text, methods] = typeof use === 'string' ? [use, undefined] : use
      return { pattern: understood(text), methods }
    })
    return Math.sign(compareSpecificity(specific!, than!))
  }

  it.each([
    ['a literal before a parameter', '/a/b', '/a/:x'],
    ['the first segment before the second', '/a/:x', '/:x/b'],
    ['a parameter before a rest', '/a/:x', '/a/*'],
    ['a longer literal before a shorter one', '/a/b/*', '/a/*'],
    ['a path before what is below it', '/a', '/a/*'],
    ['a literal early before literals later', '/a/*', '/:x/b/c'],
    ['all paths before everything', '/*', '*'],
    ['a name before everything', 'a', '*'],
    ['a pattern with methods before one without', ['/a', ['GET', 'POST']] as const, '/a'],
    ['fewer methods before more', ['/a', ['POST']] as const, ['/a', ['GET', 'PUT']] as const],
    ['a more specific pattern before one with methods', '/a/b', ['/a/:x', ['GET']] as const],
  ])('puts %s', (_title, one, other) => {
    expect(compare(one, other)).toBe(-1)
    expect(compare(other, one)).toBe(1)
  })

  it('is a total order: 0 for equal ones only, the opposite the other way round, transitive', () => {
    const uses = fc.record({
      pattern: fc.oneof(patterns(), fc.constantFrom('*', 'name', 'Other')).map(understood),
      methods: fc.constantFrom(undefined, ['GET'], ['POST'], ['GET', 'POST']),
    })
    fc.assert(
      fc.property(uses, uses, uses, (one, two, three) => {
        const isEqual = one.pattern.canonical === two.pattern.canonical && String(one.methods) === String(two.methods)
        expect(compareSpecificity(one, two) === 0).toBe(isEqual)
        expect(Math.sign(compareSpecificity(one, two))).toBe(0 - Math.sign(compareSpecificity(two, one)))
        const [first, second, third] = [one, two, three].sort(compareSpecificity)
        expect(compareSpecificity(first!, second!)).toBeLessThanOrEqual(0)
        expect(compareSpecificity(second!, third!)).toBeLessThanOrEqual(0)
        expect(compareSpecificity(first!, third!)).toBeLessThanOrEqual(0)
      }),
      { numRuns: 1000 },
    )
  })
})

describe('explainPattern', () => {
  it.each([
    ['*', '/anything'],
    ['*', 'name'],
    ['/', '/'],
    ['/*', '/'],
    ['/Orders/:id', '/orders/17'],
    ['/files/*', '/files'],
    ['/files/*', '/files/a/b'],
    ['/files/*', '/files//b'],
    ['/files/*', '/files/'],
    ['/orders', '/orders/'],
    ['/orders/:id', '/orders/'],
    ['/orders/:id/*', '/orders/'],
    ['/orders/:id/:part', '/orders//'],
    ['/:x', '/'],
    ['/:x/b', '//b'],
    ['/:x/b', '//b/'],
    ['Checkout', 'checkout'],
  ])('has nothing to say where a pattern matches: %s for %s', (pattern, reading) => {
    expect(explainPattern(pattern, reading)).toBeUndefined()
  })

  it.each([
    ['/api/orders', '/api/users', 'segment 2 is "users", the rule has "orders"'],
    ['/orders/:id', '/orders', 'segment 2 is missing, the rule has one of any name'],
    ['/orders/items', '/orders', 'segment 2 is missing, the rule has "items"'],
    ['/orders', '/orders/17', 'segment 2 is "17", the rule ends before it'],
    ['/', '/a', 'segment 1 is "a", the rule ends before it'],
    ['/orders/items', '/orders/', 'segment 2 is missing, the rule has "items"'],
    ['/orders/:id/items', '/orders/', 'segment 2 is missing, the rule has one of any name'],
    ['/a/b', '//b', 'segment 1 is empty, the rule has "a"'],
    ['/orders', '/orders//', 'segment 2 is empty, the rule ends before it'],
    ['/orders', 'orders', 'the resource "orders" is a name, the rule has a path'],
    ['checkout', '/checkout', 'the resource is "/checkout", the rule has "checkout"'],
    [
      '/a**',
      '/a',
      'the rule has no usable resource: the segment "a**" has "**"; write "/*" at the end for everything below',
    ],
  ])('says why %s does not match %s', (pattern, reading, reason) => {
    expect(explainPattern(pattern, reading)).toBe(reason)
  })
})
