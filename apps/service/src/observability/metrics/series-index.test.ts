import { memoryStore } from '@sluice/core'
import type { RuleSet } from '@sluice/core/policy'
import { PolicyEngine } from '@sluice/core/policy'
import { FakeClock, seededRandom } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { SeriesIndex } from './check-metrics.ts'

const RULES: RuleSet = {
  rules: [
    { resource: '*', dimension: 'ip', limit: 10, window: '1m' },
    { resource: '/orders/*', dimension: 'tenant', limit: 100, window: '1m' },
    {
      resource: '/orders/:id',
      dimension: 'user',
      windows: [
        { limit: 5, window: '1s' },
        { limit: 50, window: '1m' },
      ],
    },
    { resource: '/orders/special', dimension: 'user', limit: 3, window: '1m' },
  ],
  tiers: [{ name: 'gold', rules: [{ resource: '/orders/:id', dimension: 'user', limit: 500, window: '1m' }] }],
  exemptions: [
    { name: 'health', match: { resource: '/health' } },
    { name: 'office', match: { cidrs: ['10.0.0.0/8'] } },
    {
      name: 'jobs',
      match: { services: ['jobs'] },
      rules: [{ resource: '/internal/*', dimension: 'global', limit: 9, window: '1m' }],
    },
  ],
  denyList: [{ name: 'mallory', match: { resource: '/orders/*', dimension: 'user', entities: ['mallory'] } }],
}

function scene(ruleSet: RuleSet = RULES) {
  const clock = new FakeClock()
  const random = seededRandom(1)
  const engine = new PolicyEngine({ store: memoryStore({ clock, random }), clock, random })
  const index = new SeriesIndex((resource, dimension) => `${dimension} ${resource}`)
  const use = (number: number, next: RuleSet): void => {
    engine.use({ enforced: { number, ruleSet: next } })
    index.use({ enforced: { number, ruleSet: next } })
  }
  use(1, ruleSet)
  return { clock, engine, index, use }
}

describe('SeriesIndex', () => {
  it.each([
    [
      'the most specific rule, whichever decided',
      { resource: '/orders/17', user: 'u', ip: '1.2.3.4' },
      'user /orders/:id',
    ],
    ['a literal before any segment', { resource: '/orders/special', user: 'u' }, 'user /orders/special'],
    ['any segment before all below', { resource: '/orders/17', tenant: 't', user: 'u' }, 'user /orders/:id'],
    ['all below', { resource: '/orders/17/items', tenant: 't' }, 'tenant /orders/*'],
    ['everything', { resource: '/elsewhere/17', ip: '1.2.3.4' }, 'ip *'],
    ['a rule of a tier', { resource: '/orders/17', user: 'u', tier: 'gold' }, 'user /orders/:id'],
    ['a rule of an exemption', { resource: '/internal/sync', service: 'jobs' }, 'global /internal/*'],
    ['an exemption by its resource', { resource: '/health', user: 'u' }, 'none /health'],
    ['an exemption of everything', { resource: '/orders/17', ip: '10.1.1.1' }, 'none *'],
    ['an entry of the deny list', { resource: '/orders/17', user: 'mallory' }, 'user /orders/*'],
    ['no rule at all', { resource: '/elsewhere/secret-17' }, 'none other'],
  ])('finds %s', (_, request, expected) => {
    const { engine, index } = scene()
    expect(index.find(engine.check(request))).toBe(expected)
  })

  it('has one resource for a request, denied by one rule or allowed under another', () => {
    const { engine, index } = scene({
      rules: [
        { resource: '*', dimension: 'ip', limit: 2, window: '1m' },
        { resource: '/data', dimension: 'user', limit: 100, window: '1m' },
      ],
    })
    const found = [1, 2, 3].map(() => index.find(engine.check({ resource: '/data', user: 'u', ip: '1.2.3.4' })))
    expect(found).toEqual(['ip /data', 'ip /data', 'ip /data'])
  })

  it('finds the rule that caused a block, and none for a block set by an operator', () => {
    const { engine, index, clock } = scene({
      rules: [
        {
          resource: '/login',
          dimension: 'ip',
          limit: 1,
          window: '1m',
          penalty: { after: 1, within: '1m', block: '1h' },
        },
      ],
    })
    const request = { resource: '/login', ip: '1.2.3.4' }
    engine.check(request)
    engine.check(request)
    expect(engine.check(request).reason).toBe('blocked')
    expect(index.find(engine.check(request))).toBe('ip /login')
    engine.entries.putBlock({
      dimension: 'ip',
      entity: '5.6.7.8',
      until: clock.nowMicros() / 1000 + 1000,
      strikes: 1,
      forgottenAt: 0,
    })
    expect(index.find(engine.check({ resource: '/login', ip: '5.6.7.8' }))).toBe('ip other')
  })

  it('goes by the rules that a decision was made by, also when others are in force since', () => {
    const { engine, index, use } = scene()
    const before = engine.check({ resource: '/orders/17', user: 'u' })
    use(2, { rules: [{ name: '/orders/:id@user', resource: '/other', dimension: 'user', limit: 5, window: '1m' }] })
    expect(index.find(before)).toBe('user /orders/:id')
    expect(index.find(engine.check({ resource: '/other', user: 'u' }))).toBe('user /other')
  })

  it('keeps rules of the candidate apart from those that are enforced', () => {
    const { index } = scene()
    const candidate = {
      rules: [{ name: 'same', resource: '/new', dimension: 'user', limit: 5, window: '1m' }],
    } as const
    const enforced = { rules: [{ name: 'same', resource: '/old', dimension: 'user', limit: 5, window: '1m' }] } as const
    index.use({
      enforced: { number: 7, ruleSet: enforced },
      candidate: { number: 8, ruleSet: candidate, stage: 'shadow', percent: 0 },
    })
    expect(index.findRule('same', 'user', 0)).toBe('user /old')
    expect(index.findRule('same', 'user', 8)).toBe('user /new')
    expect(index.findRule('unheard-of', 'user', 8)).toBe('user other')
  })

  it('knows the domains of descriptors, and no others', () => {
    const { index } = scene({ rules: [], domains: [{ domain: 'shop', descriptors: [] }] })
    expect(index.findDomain('shop')).toBe('descriptor shop')
    expect(index.findDomain('user-17')).toBe('descriptor other')
  })

  it('keeps 64 dimensions of a resource apart, and one for the rest, whatever blocks name', () => {
    const made: string[] = []
    const index = new SeriesIndex((resource, dimension) => made.push(`${dimension} ${resource}`))
    const decision = { version: 0, limits: [], reason: 'blocked', rule: '' } as const
    for (let number = 0; number < 1000; number++) index.find({ ...decision, dimension: `d${number}` } as never)
    expect(made).toHaveLength(65)
    expect(made.at(-1)).toBe('other other')
  })
})
