import type { ConfigStore } from '@sluice/config-store'
import { openConfigStore } from '@sluice/config-store'
import { describe, expect, it, onTestFinished } from 'vitest'
import { enforceFirstRules, FIRST_RULES } from './first-start.ts'

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
