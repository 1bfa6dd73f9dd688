import { describe, expect, it } from 'vitest'
import { LogSampler } from './logger.ts'

describe('LogSampler', () => {
  it('admits the limit of a message, and reports the rest in a later second', () => {
    const sampler = new LogSampler<'info' | 'warn'>(2)
    expect(sampler.turn(1000)).toEqual([])
    expect([1, 2, 3, 4].map(() => sampler.admit('info', 'a'))).toEqual([true, true, false, false])
    expect(sampler.admit('warn', 'a')).toBe(true)
    expect(sampler.admit('info', 'b')).toBe(true)
    expect(sampler.turn(1999)).toEqual([])
    expect(sampler.admit('info', 'a')).toBe(false)
    expect(sampler.turn(2000)).toEqual([{ level: 'info', message: 'a', count: 3 }])
    expect(sampler.turn(2000)).toEqual([])
    expect(sampler.admit('info', 'a')).toBe(true)
    expect(sampler.turn(9000)).toEqual([])
  })

  it('starts over also when the clock goes back', () => {
    const sampler = new LogSampler<'info'>(1)
    sampler.turn(5000)
    expect([1, 2].map(() => sampler.admit('info', 'a'))).toEqual([true, false])
    expect(sampler.turn(4000)).toEqual([{ level: 'info', message: 'a', count: 1 }])
    expect(sampler.admit('info', 'a')).toBe(true)
  })

  it('knows at most 1000 messages apart', () => {
    const sampler = new LogSampler<'info'>(1)
    sampler.turn(0)
    const admitted = Array.from({ length: 5000 }, (_, n) => sampler.admit('info', `message ${n}`))
    expect(admitted.filter(Boolean)).toHaveLength(1001)
    expect(sampler.admit('info', 'message 0')).toBe(false)
    expect(sampler.finish()).toEqual([
      { level: 'info', message: 'message 0', count: 1 },
      { level: 'info', message: 'other messages', count: 3999 },
    ])
  })

  it('suppresses nothing when there is no bound', () => {
    const sampler = new LogSampler<'info'>(Number.POSITIVE_INFINITY)
    sampler.turn(0)
    for (let n = 0; n < 1000; n++) expect(sampler.admit('info', 'a')).toBe(true)
    expect(sampler.finish()).toEqual([])
  })
})
