import type { ConfigStore } from '@sluice/config-store'
import { openConfigStore } from '@sluice/config-store'
import { memoryStore } from '@sluice/core'
import { PolicyEngine } from '@sluice/core/policy'
import { FakeClock } from '@sluice/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { enforceFirstRules, FIRST_RULES } from './config-database.ts'

async function emptyConfig(): Promise<ConfigStore> {
  const config = await openConfigStore('sqlite::memory:')
  onTestFinished(() => config.close())
  return config
}

describe('the first rules', () => {
  it('are enforced in an empty configuration, once', async () => {
    const config = await emptyConfig()
    await enforceFirstRules(config)
    const { enforced } = await config.versions.current()
    expect(enforced).toMatchObject({ number: 1, createdBy: 'first start' })
    expect((await config.versions.get(1))?.ruleSet).toEqual(FIRST_RULES)
    const before = await config.feed.head()
    await enforceFirstRules(config)
    expect(await config.feed.head()).toBe(before)
  })

  it('leave rules alone that are there, drafts among them', async () => {
    const config = await emptyConfig()
    await config.versions.create({ rules: [] }, { name: 'ada' }, 0)
    await enforceFirstRules(config)
    expect((await config.versions.current()).enforced).toBeUndefined()
  })

  it('are one version when many nodes start at once', async () => {
    const config = await emptyConfig()
    await Promise.all(Array.from({ length: 8 }, () => enforceFirstRules(config)))
    expect((await config.versions.list()).items).toHaveLength(1)
  })
})

describe('under the first rules', () => {
  function engineWith(neverBlock: readonly string[] = []) {
    const clock = new FakeClock()
    const engine = new PolicyEngine({ store: memoryStore({ clock }), clock, ruleSet: FIRST_RULES, neverBlock })
    /** Sends requests at a constant rate; returns the number allowed in each second. */
    const flood = (ip: string, perSecond: number, seconds: number): readonly number[] =>
      Array.from({ length: seconds }, () => {
        let allowed = 0
        for (let call = 0; call < perSecond; call++) if (engine.check({ resource: '/api', ip }).allowed) allowed++
        clock.advance(1000)
        return allowed
      })
    return { engine, clock, flood }
  }

  it.each(['/health', '/healthz', '/livez', '/readyz', '/Health/'])('%s is exempt', (resource) => {
    const { engine } = engineWith()
    for (let call = 0; call < 300; call++) {
      expect(engine.check({ resource, user: 'u', ip: '192.0.2.1' })).toMatchObject({ allowed: true, reason: 'exempt' })
    }
    expect(engine.check({ resource: `${resource}/other`, user: 'u' })).toMatchObject({ reason: 'allowed' })
  })

  it('an address is blocked after 1,000 denials within a minute, for 5 minutes, and everywhere', () => {
    const { engine, clock, flood } = engineWith()
    // 350 denials a second.
    expect(flood('192.0.2.1', 450, 2)).toEqual([100, 100])
    expect(engine.entries.blocks()).toEqual([])
    flood('192.0.2.1', 450, 1)
    expect(engine.entries.blocks()).toMatchObject([{ dimension: 'ip', entity: '192.0.2.1', rule: 'default-ip' }])
    expect(engine.check({ resource: '/health', ip: '192.0.2.1' })).toMatchObject({ allowed: false, reason: 'blocked' })
    expect(flood('192.0.2.2', 100, 1)).toEqual([100])
    clock.advance(300_000)
    expect(flood('192.0.2.1', 100, 1)).toEqual([100])
  })

  it('an address that asks a little too much is denied and never blocked', () => {
    const { engine, flood } = engineWith()
    expect(new Set(flood('192.0.2.1', 115, 120))).toEqual(new Set([100]))
    expect(engine.entries.blocks()).toEqual([])
  })

  it.each(['127.0.0.1', '::1', '10.1.2.3'])('%s, of this machine or a trusted proxy, is never blocked', (ip) => {
    const { engine, flood } = engineWith(['10.0.0.0/8'])
    expect(flood(ip, 2000, 3)).toEqual([100, 100, 100])
    expect(engine.entries.blocks()).toEqual([])
  })
})
