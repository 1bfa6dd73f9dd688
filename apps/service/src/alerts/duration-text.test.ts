import { describe, expect, it } from 'vitest'
import { durationMsOf } from './duration-text.ts'

describe('a duration in words', () => {
  it.each([
    ['0s', 0],
    ['250ms', 250],
    ['1.5s', 1500],
    ['10 s', 10_000],
    ['5m', 300_000],
    ['1h30m', 5_400_000],
    ['7d', 604_800_000],
    ['2w', 1_209_600_000],
    ['0.0004s', 0],
  ])('%s', (text, durationMs) => {
    expect(durationMsOf(text)).toBe(durationMs)
  })

  it.each(['', '5', 'm', '5m!', '-5m', '5M', '5m 3', '1e3s'])('is not: "%s"', (text) => {
    expect(durationMsOf(text)).toBeUndefined()
  })
})
