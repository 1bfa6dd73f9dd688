import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { jsonErrorOffset } from './json-syntax.ts'

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const documents = fc
  .json()
  .chain((text) =>
    fc.constantFrom(text, JSON.stringify(JSON.parse(text), null, 2), JSON.stringify(JSON.parse(text), null, '\t')),
  )

describe('the fault in a JSON text', () => {
  it('is nowhere when JSON.parse can read it, and somewhere when it cannot (property)', () => {
    const mutations = fc.tuple(
      documents,
      fc.nat(),
      fc.nat(2),
      fc.constantFrom(...'{}[]",:0123.eE+-\\utrfn \n\u0000\u007fä'),
    )
    fc.assert(
      fc.property(mutations, ([text, where, cut, filling]) => {
        const at = where % (text.length + 1)
        const mutated = text.slice(0, at) + filling + text.slice(at + cut)
        expect([mutated, jsonErrorOffset(mutated) === undefined]).toEqual([mutated, isJson(mutated)])
        expect(jsonErrorOffset(text)).toBeUndefined()
      }),
      { numRuns: 2000 },
    )
  })

  it.each([
    ['{"a": 1,}', 8],
    ['{"a": 1 "b": 2}', 8],
    ['[1, 2', 5],
    ['{a: 1}', 1],
    ["{'a': 1}", 1],
    ['[1] // comment', 4],
    ['', 0],
    ['[01]', 1],
    ['["a\nb"]', 1],
  ])('of %j is at %i', (text, offset) => {
    expect(jsonErrorOffset(text)).toBe(offset)
  })
})
