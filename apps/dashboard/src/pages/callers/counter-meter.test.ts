import { expect, it } from 'vitest'
import { usedShare } from './counter-meter.tsx'

const INSTANTS = { resetAt: null, blockedUntil: null }

it.each([
  ['half of a window', { limit: 100, used: 50, remaining: 50 }, 0.5],
  ['a burst that is smaller than the limit', { limit: 40, used: 9, remaining: 3 }, 0.75],
  ['the whole of that burst', { limit: 40, used: 12, remaining: 0 }, 1],
  ['a burst that is larger than the limit', { limit: 40, used: 60, remaining: 40 }, 0.6],
  ['more than a limit that was lowered', { limit: 20, used: 30, remaining: 0 }, 1],
  ['a limit of nothing', { limit: 0, used: 0, remaining: 0 }, 1],
  ['what the store did not tell', { limit: 40, used: null, remaining: null }, 0],
])('%s', (_, counter, share) => {
  expect(usedShare({ ...counter, ...INSTANTS })).toBe(share)
})
