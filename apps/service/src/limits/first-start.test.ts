import type { ConfigStore } from '@sluice/config-store'
import { openConfigStore } from '@sluice/config-store'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createFirstKey, enforceFirstRules, FIRST_RULES } from './first-start.ts'

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

describe('the first key', () => {
  it('has the role admin, and is made once', async () => {
    const config = await emptyConfig()
    const token = await createFirstKey(config)
    expect(await config.apiKeys.verify(token!)).toMatchObject({ role: 'admin', name: 'first' })
    const before = await config.feed.head()
    expect(await createFirstKey(config)).toBeUndefined()
    expect(await config.feed.head()).toBe(before)
  })

  it('is not made when the only key there was has ended', async () => {
    const config = await emptyConfig()
    const { apiKey } = await config.apiKeys.create({ name: 'k', role: 'editor' }, { name: 'ada' })
    await config.apiKeys.revoke(apiKey.id, { name: 'ada' })
    expect(await createFirstKey(config)).toBeUndefined()
  })

  it('is one key when many nodes start at once', async () => {
    const config = await emptyConfig()
    const tokens = await Promise.all(Array.from({ length: 8 }, () => createFirstKey(config)))
    expect(tokens.filter((token) => token !== undefined)).toHaveLength(1)
    expect((await config.apiKeys.list()).items).toHaveLength(1)
  })
})
