import { describe, expect, it } from 'vitest'
import { parseDuration, parseInstant } from './command.ts'

describe('parseDuration', () => {
  it.each([
    ['250ms', 250],
    ['90s', 90_000],
    ['1.5h', 5_400_000],
    ['1h30m', 5_400_000],
    ['2w', 1_209_600_000],
    ['10 s', 10_000],
    ['0s', 0],
    ['', undefined],
    ['5', undefined],
    ['-5s', undefined],
    ['5y', undefined],
    ['1h 30m', undefined],
    [`${'1s'.repeat(30)}`, undefined],
  ])('of %j is %s', (text, ms) => {
    expect(parseDuration(text)).toBe(ms)
  })
})

describe('parseInstant', () => {
  it.each([
    ['2027-01-01', Date.UTC(2027, 0, 1)],
    ['2027-01-01T12:30Z', Date.UTC(2027, 0, 1, 12, 30)],
    ['2027-01-01T12:30:15.250Z', Date.UTC(2027, 0, 1, 12, 30, 15, 250)],
    ['2027-01-01T12:30:15+02:00', Date.UTC(2027, 0, 1, 10, 30, 15)],
    ['2027-01-01T12:30:15', undefined],
    ['2027-13-01', undefined],
    ['tomorrow', undefined],
    ['2027', undefined],
  ])('of %j is %s', (text, ms) => {
    expect(parseInstant(text)).toBe(ms)
  })
})
