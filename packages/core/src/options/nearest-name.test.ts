import { describe, expect, it } from 'vitest'
import { nearestName } from './nearest-name.ts'

const KNOWN = ['limit', 'window', 'windows', 'refillPerSecond', 'to', 'name']

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
    expect(nearestName(written, KNOWN)).toBe(meant)
  })
})
