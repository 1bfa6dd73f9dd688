import type { RuleSet } from '@sluice/core/policy'
import { keyDigest } from '@sluice/runtime'
import { FakeClock } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { createScene, SECRET } from './observability.test.support.ts'
import { mergeTopCallers, publishedCallers, shownCallers, TopCallers } from './top-callers.ts'

function recent() {
  const clock = new FakeClock()
  return { clock, top: new TopCallers(() => clock.nowMicros() / 1000) }
}

const VIEW = { limit: 10, secret: SECRET }

describe('TopCallers', () => {
  it('counts denials by the caller of the dimension that denied', () => {
    const ruleSet: RuleSet = {
      rules: [
        { resource: '*', dimension: 'user', limit: 1, window: '1m' },
        { resource: '*', dimension: 'ip', limit: 3, window: '1m' },
        { resource: '*', dimension: 'global', limit: 6, window: '1m' },
      ],
    }
    const { engine, instrument } = createScene({ ruleSet })
    const check = (user: string, ip: string): void => void engine.check({ resource: '/data', user, ip })
    for (let call = 0; call < 4; call++) check('ann', '192.0.2.1')
    for (const user of ['bob', 'cid', 'dan', 'eve']) check(user, '192.0.2.1')
    for (const user of ['fay', 'gil', 'hal', 'ida']) check(user, '192.0.2.2')
    // ann 1 of 4; bob and cid, then the address is full for dan and eve; three of .2, then all together are too many.
    expect(shownCallers(instrument.report().top, VIEW)).toEqual([
      {
        dimension: 'ip',
        entries: [
          { entity: '192.0.2.1', denials: 2, error: 0 },
          { entity: '192.0.2.2', denials: 1, error: 0 },
        ],
      },
      { dimension: 'user', entries: [{ entity: 'ann', denials: 3, error: 0 }] },
    ])
  })

  it('counts each part of a joint dimension, descriptors, and addresses by their network', () => {
    const { top } = recent()
    const request = {
      resource: '/',
      user: 'ann',
      tenant: 't1',
      ip: '2001:db8::1',
      service: 'billing',
      descriptors: { plan: 'free', seats: 3 },
    }
    top.denied(request, 'tenant+user')
    top.denied(request, 'plan')
    top.denied(request, 'service')
    top.denied(request, 'seats')
    top.denied(request, 'ip')
    top.denied({ ...request, ip: '2001:db8::2' }, 'ip')
    top.denied(request, 'global')
    top.denied(request, 'toString')
    top.denied({ resource: '/' }, 'user')
    const shown = shownCallers(top.snapshot(), VIEW).map(({ dimension, entries }) => [
      dimension,
      entries.map(({ entity, denials }) => `${entity} ${denials}`),
    ])
    expect(Object.fromEntries(shown)).toEqual({
      tenant: ['t1 1'],
      user: ['ann 1'],
      plan: ['free 1'],
      service: ['billing 1'],
      seats: ['3 1'],
      ip: ['2001:db8::/64 2'],
    })
  })

  it('shows API keys by their digests only', () => {
    const { top } = recent()
    top.denied({ resource: '/', apiKey: 'key-abc' }, 'apiKey')
    const digest = keyDigest('key-abc', Buffer.from(SECRET).toString('hex'))
    expect(shownCallers(publishedCallers(top.snapshot(), VIEW), VIEW)).toEqual([
      { dimension: 'apiKey', entries: [{ entity: digest, denials: 1, error: 0 }] },
    ])
  })

  it('publishes the most denied callers, and how much any other was denied at most', () => {
    const { top } = recent()
    for (let number = 1; number <= 20; number++) {
      for (let time = 0; time < number; time++) top.denied({ resource: '/', user: `u${number}` }, 'user')
    }
    const published = publishedCallers(top.snapshot(), VIEW)
    const { callers } = published.dimensions[0]!
    expect(callers.entries.map(({ key }) => key)).toEqual(Array.from({ length: 10 }, (_, place) => `u${20 - place}`))
    expect(callers.missed).toBe(10)
    // The sum of two nodes is right, and a caller that one of them cut is off by no more than it says.
    const other = recent().top
    for (let time = 0; time < 7; time++) other.denied({ resource: '/', user: 'u3' }, 'user')
    const merged = mergeTopCallers([published, publishedCallers(other.snapshot(), VIEW)])
    const shown = shownCallers(merged, { limit: 20 })[0]!.entries
    expect(shown.find(({ entity }) => entity === 'u20')).toEqual({ entity: 'u20', denials: 20, error: 0 })
    expect(shown.find(({ entity }) => entity === 'u3')).toEqual({ entity: 'u3', denials: 17, error: 10 })
  })

  it('finds the few that are denied most among a flood of others, in bounded memory', () => {
    const { top } = recent()
    for (let number = 0; number < 100_000; number++) {
      top.denied({ resource: '/', ip: `10.${number >> 16}.${(number >> 8) & 255}.${number & 255}` }, 'ip')
      if (number % 10 === 0) top.denied({ resource: '/', ip: '203.0.113.7' }, 'ip')
      top.denied({ resource: '/', descriptors: { [`d${number % 1000}`]: number } }, `d${number % 1000}`)
    }
    const { dimensions } = top.snapshot()
    expect(dimensions).toHaveLength(16)
    const ip = dimensions.find(({ dimension }) => dimension === 'ip')!
    expect(ip.callers.entries.length).toBeLessThanOrEqual(2000)
    const [first] = shownCallers(top.snapshot(), { ...VIEW, dimension: 'ip' })[0]!.entries
    expect(first!.entity).toBe('203.0.113.7')
    expect(first!.denials).toBeGreaterThanOrEqual(10_000)
    expect(first!.denials - first!.error).toBeLessThanOrEqual(10_000)
  })

  it('says how many denials there were at most, and how many fewer there may have been', () => {
    const callers = { total: 20, missed: 4, entries: [{ key: 'ann', count: 10, missed: 3 }] }
    const shown = shownCallers({ startedAt: 0, dimensions: [{ dimension: 'user', callers }] }, VIEW)
    expect(shown).toEqual([{ dimension: 'user', entries: [{ entity: 'ann', denials: 13, error: 3 }] }])
  })

  it('forgets after ten minutes, and remembers for five', () => {
    const { clock, top } = recent()
    const start = clock.nowMicros() / 1000
    top.denied({ resource: '/', user: 'ann' }, 'user')
    clock.advance(10 * 60_000 - 1)
    expect(shownCallers(top.snapshot(), VIEW)[0]!.entries).toHaveLength(1)
    expect(top.snapshot().startedAt).toBe(start)
    clock.advance(1)
    expect(shownCallers(top.snapshot(), VIEW)[0]!.entries).toEqual([])
    expect(top.snapshot().startedAt).toBe(start + 5 * 60_000)
  })

  it('counts a caller by the beginning of a very long name', () => {
    const { top } = recent()
    top.denied({ resource: '/', user: 'x'.repeat(10_000) }, 'user')
    expect(shownCallers(top.snapshot(), VIEW)[0]!.entries[0]!.entity).toBe('x'.repeat(256))
  })

  it('adds up what several threads know', () => {
    const one = recent().top
    const other = recent().top
    for (let call = 0; call < 3; call++) one.denied({ resource: '/', user: 'ann' }, 'user')
    for (let call = 0; call < 2; call++) other.denied({ resource: '/', user: 'ann' }, 'user')
    for (let call = 0; call < 4; call++) other.denied({ resource: '/', user: 'bob', ip: '192.0.2.1' }, 'user')
    other.denied({ resource: '/', ip: '192.0.2.1' }, 'ip')
    const merged = mergeTopCallers([one.snapshot(), other.snapshot()])
    expect(shownCallers(merged, { ...VIEW, limit: 1 })).toEqual([
      { dimension: 'ip', entries: [{ entity: '192.0.2.1', denials: 1, error: 0 }] },
      { dimension: 'user', entries: [{ entity: 'ann', denials: 5, error: 0 }] },
    ])
  })
})
