import { describe, expect, it } from 'vitest'
import { nearestName, numberAdvice, optionAdvice } from './option-advice.ts'

const KNOWN = ['limit', 'window', 'burst']

describe('what to do about an option that there is not', () => {
  it.each([
    ['max', 'Write "limit": the units in each window.'],
    ['points', 'Write "limit": the units in each window.'],
    ['tokensPerInterval', 'Write "limit": the units in each window.'],
    ['windowMs', 'Write "window": a string with its unit, such as "1m", or milliseconds.'],
    ['duration', 'Write "window": a string with its unit, such as "1m", or milliseconds.'],
    ['ttl', 'Write "window": a string with its unit, such as "1m", or milliseconds.'],
    ['limt', 'Did you mean "limit"?'],
    ['windows', 'Did you mean "window"?'],
    ['capacity', undefined],
    ['constructor', undefined],
  ])('%s: %s', (option, advice) => {
    expect(optionAdvice(option, KNOWN)).toBe(advice)
  })

  it('does not advise an option that is not known either', () => {
    expect(optionAdvice('max', ['capacity', 'refillPerSecond'])).toBeUndefined()
  })
})

it.each([
  [undefined, 'Add "limit".'],
  ['5', 'Write the number without quotes: limit: 5.'],
  ['5s', undefined],
  ['', undefined],
  [true, undefined],
])('what to do about %s in place of a number', (value, advice) => {
  expect(numberAdvice('limit', value)).toBe(advice)
})

const NAMES = ['limit', 'window', 'windows', 'refillPerSecond', 'to', 'name']

describe('the name that was meant', () => {
  it.each([
    ['limt', 'limit'],
    ['limiit', 'limit'],
    ['lmiit', 'limit'],
    ['lamit', 'limit'],
    ['LIMIT', 'limit'],
    ['windwo', 'window'],
    ['windowss', 'windows'],
    ['refill_per_second', 'refillPerSecond'],
    ['tp', 'to'],
    ['rate', undefined],
    ['', undefined],
    ['capacity', undefined],
    ['x'.repeat(1000), undefined],
  ])('%s: %s', (written, meant) => {
    expect(nearestName(written, NAMES)).toBe(meant)
  })
})
