import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ValuePattern } from './descriptor-rule.ts'

describe('a value with asterisks', () => {
  it.each([
    ['*', '', true],
    ['*', 'anything', true],
    ['foo*', 'foo', true],
    ['foo*', 'foobar', true],
    ['foo*', 'fo', false],
    ['foo*', 'xfoo', false],
    ['*.example.com', 'a.example.com', true],
    ['*.example.com', '.example.com', true],
    ['*.example.com', 'example.com', false],
    ['/a/*/c', '/a/b/c', true],
    ['/a/*/c', '/a//c', true],
    ['/a/*/c', '/a/c', false],
    ['/a/*/c', '/a/b/cd', false],
    ['a*a', 'a', false],
    ['a*a', 'aa', true],
    ['a**a', 'aa', true],
    ['*b*', 'abc', true],
    ['*b*', 'ac', false],
    ['*ab*ab*', 'xabyabz', true],
    ['*ab*ab*', 'xab', false],
    ['a*b*c', 'abc', true],
    ['a*bc*c', 'abc', false],
    ['a.c*', 'abc', false],
    ['x*', 'x\ny', true],
  ])('%s and %j: %s', (pattern, value, expected) => {
    expect(new ValuePattern(pattern).matches(value)).toBe(expected)
  })

  it('matches what a regular expression does, on any string (property)', () => {
    const letters = (...units: string[]): fc.Arbitrary<string> =>
      fc.string({ unit: fc.constantFrom(...units), maxLength: 9 })
    const patterns = letters('a', 'b', '.', '*').filter((text) => text.includes('*'))
    fc.assert(
      fc.property(patterns, letters('a', 'b', '.', '\n'), (pattern, value) => {
        const source = pattern.replaceAll('.', '\\.').replaceAll('*', '[^]*')
        expect(new ValuePattern(pattern).matches(value)).toBe(new RegExp(`^${source}$`).test(value))
      }),
      { numRuns: 5000 },
    )
  })

  it('takes a long value that nearly matches in stride', () => {
    const pattern = new ValuePattern(`${'*a'.repeat(50)}*b`)
    expect(pattern.matches('a'.repeat(1_000_000))).toBe(false)
    expect(pattern.matches(`${'a'.repeat(1_000_000)}b`)).toBe(true)
  })
})
