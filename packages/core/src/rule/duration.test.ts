import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Duration, durationMicros, durationMs } from './duration.ts'

describe('durationMs', () => {
  it.each<[Duration, number]>([
    [250, 250],
    [0.001, 0.001],
    [1.001, 1.001],
    ['250ms', 250],
    ['1.5s', 1500],
    ['1m', 60_000],
    ['1h', 3_600_000],
    ['7d', 604_800_000],
    ['2w', 1_209_600_000],
    ['10 s', 10_000],
    ['1h30m', 5_400_000],
    ['1m500ms', 60_500],
    ['0.001ms', 0.001],
    ['100.25ms', 100.25],
    ['36600d', 36_600 * 86_400_000],
  ])('%s is %d ms', (duration, ms) => {
    expect(durationMs(duration, 'window')).toBe(ms)
  })

  it.each([
    ['zero', 0],
    ['negative', -1],
    ['NaN', Number.NaN],
    ['infinite', Number.POSITIVE_INFINITY],
    ['a fraction of a microsecond', 0.0005],
    ['more than a hundred years', 36_600 * 86_400_000 + 1],
    ['no text', ''],
    ['no unit', '5'],
    ['no number', 'm'],
    ['an unknown unit', '5y'],
    ['a negative text', '-5s'],
    ['an exponent', '1e3s'],
    ['trailing text', '5s later'],
    ['leading space', ' 5s'],
    ['a space between parts', '1h 30m'],
    ['a string that rounds to nothing', '0.0001ms'],
    ['a very long text', '1s'.repeat(30)],
    ['undefined', undefined],
    ['null', null],
    ['an object', { ms: 5 }],
    ['a bigint', 5n],
  ])('rejects %s', (_what, duration) => {
    let error: unknown
    try {
      durationMs(duration, 'lease')
    } catch (thrown) {
      error = thrown
    }
    expect(error).toMatchObject({ code: 'SLUICE_INVALID_DURATION', received: duration })
    expect(String(error)).toContain('"lease" is not a usable duration')
  })
})

describe('a duration that cannot be used', () => {
  it.each([
    ['1 minute', 'Write "1m".'],
    ['15 minutes', 'Write "15m".'],
    ['30 seconds', 'Write "30s".'],
    ['30 SEC', 'Write "30s".'],
    ['1.5 hours', 'Write "1.5h".'],
    ['2hrs', 'Write "2h".'],
    ['1 day', 'Write "1d".'],
    ['2 weeks', 'Write "2w".'],
    ['100 milliseconds', 'Write "100ms".'],
    ['60', 'Write "60s" for seconds, or "60ms" for milliseconds.'],
    ['1 month', 'Give "window" with its unit, for example "1m".'],
    ['soon', 'Give "window" with its unit, for example "1m".'],
    [-5, 'Give "window" with its unit, for example "1m".'],
  ])('%s: %s', (duration, advice) => {
    expect(() => durationMs(duration, 'window')).toThrow(advice)
  })
})

describe('durationMicros', () => {
  it('is whole for every number of microseconds, as a number and as a string', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e13 }), (micros) => {
        expect(durationMicros(micros / 1000, 'window')).toBe(micros)
        const text = `${Math.floor(micros / 1000)}.${String(micros % 1000).padStart(3, '0')}ms` as Duration
        expect(durationMicros(text, 'window')).toBe(micros)
      }),
      { examples: [[1001], [1_000_000_001]] },
    )
  })

  it('adds the parts of a string up', () => {
    fc.assert(
      fc.property(fc.nat(23), fc.nat(59), (hours, minutes) => {
        fc.pre(hours + minutes > 0)
        expect(durationMicros(`${hours}h${minutes}m`, 'window')).toBe((hours * 60 + minutes) * 60_000_000)
      }),
    )
  })
})
