import { describe, expect, it } from 'vitest'
import { ANY, can, checkForms, FLAG, FUNCTION, isWhole, OBJECT, type OptionForms } from './option-form.ts'

const FORMS: OptionForms = {
  url: { expected: 'an address', accepts: (value) => typeof value === 'string', isNeeded: true, isSecret: true },
  tries: {
    expected: 'a whole number from 1 to 9',
    accepts: (value) => isWhole(value, 1, 9),
    advise: (value, option) => (value === 0 ? `Leave "${option}" out.` : undefined),
  },
  note: ANY,
}

/** The message of what is wrong, without the code. */
function problemOf(options: object): string | undefined {
  try {
    checkForms(options, FORMS)
  } catch (error) {
    return (error as Error).message.replace('SLUICE_INVALID_OPTION: ', '')
  }
  return undefined
}

describe('the forms of options', () => {
  it.each([
    ['all is right', { url: 'a', tries: 9, note: Symbol('any') }, undefined],
    ['what is undefined is left out', { url: 'a', tries: undefined }, undefined],
    ['one is missing', { tries: 1 }, '"url" is missing; expected an address. Add "url".'],
    ['a secret is not shown', { url: 12_345 }, '"url" cannot be used; expected an address.'],
    [
      'a wrong one',
      { url: 'a', tries: 10 },
      '"tries" cannot be used; received 10; expected a whole number from 1 to 9.',
    ],
    [
      'one with advice',
      { url: 'a', tries: 0 },
      '"tries" cannot be used; received 0; expected a whole number from 1 to 9. Leave "tries" out.',
    ],
  ])('%s', (_, options, message) => {
    expect(problemOf(options)).toBe(message)
  })

  it('of common kinds', () => {
    const values = [undefined, null, true, 1, 'a', {}, [], () => 1]
    const accepted = [OBJECT, FUNCTION, FLAG].map(({ accepts }) => values.map((value) => accepts(value)))
    expect(accepted.map((row) => row.flatMap((isAccepted, index) => (isAccepted ? [index] : [])))).toEqual([
      [5, 6],
      [7],
      [2],
    ])
  })
})

it('what has a method', () => {
  const values = [{ run: () => 1 }, Object.assign(() => 1, { run: () => 1 }), { run: 1 }, {}, null, undefined, 'run']
  expect(values.map((value) => can(value, 'run'))).toEqual([true, true, false, false, false, false, false])
})

it.each([
  [1, true],
  [9, true],
  [0, false],
  [10, false],
  [1.5, false],
  [Number.NaN, false],
  ['1', false],
])('whether %s is a whole number from 1 to 9: %s', (value, isOne) => {
  expect(isWhole(value, 1, 9)).toBe(isOne)
})
