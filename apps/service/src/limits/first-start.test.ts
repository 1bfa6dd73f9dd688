import type { ConfigStore } from '@sluice/config-store'
import { openConfigStore } from '@sluice/config-store'
import { describe, expect, it, onTestFinished } from 'vitest'
import { FIRST_RULES, prepareFirstStart } from './first-start.ts'

async function emptyConfig(): Promise<ConfigStore> {
  const config = await openConfigStore('sqlite::memory:')
  onTestFinished(() => config.close())
  return config
}

const WITH_RULES = { withRules: true }

describe('the first start', () => {
  it('enforces rules and makes a key that may do everything', async () => {
    const config = await emptyConfig()
    const token = await prepareFirstStart(config, WITH_RULES)
    const { enforced } = await config.versions.current()
    expect(enforced).toMatchObject({ number: 1, createdBy: 'first start' })
    expect((await config.versions.get(1))?.ruleSet).toEqual(FIRST_RULES)
    expect(await config.apiKeys.verify(token!)).toMatchObject({ role: 'admin', name: 'first' })
  })

  it('is only once: later starts change nothing', async () => {
    const config = await emptyConfig()
    await prepareFirstStart(config, WITH_RULES)
    const before = await config.feed.head()
    expect(await prepareFirstStart(config, WITH_RULES)).toBeUndefined()
    expect(await config.feed.head()).toBe(before)
  })

  it('leaves rules alone that are there, drafts among them', async () => {
    const config = await emptyConfig()
    await config.versions.create({ rules: [] }, { name: 'ada' }, 0)
    const token = await prepareFirstStart(config, WITH_RULES)
    expect((await config.versions.current()).enforced).toBeUndefined()
    expect(await config.apiKeys.verify(token!)).toMatchObject({ role: 'admin' })
  })

  it('makes only a key when the rules come from elsewhere', async () => {
    const config = await emptyConfig()
    expect(await prepareFirstStart(config, { withRules: false })).toMatch(/^slk_/)
    expect((await config.versions.list()).items).toEqual([])
  })

  it('makes none when the only key there was has ended', async () => {
    const config = await emptyConfig()
    const { apiKey } = await config.apiKeys.create({ name: 'k', role: 'editor' }, { name: 'ada' })
    await config.apiKeys.revoke(apiKey.id, { name: 'ada' })
    expect(await prepareFirstStart(config, WITH_RULES)).toBeUndefined()
  })

  it.each([true, false])('of many nodes at once makes one key, with rules: %j', async (withRules) => {
    const config = await emptyConfig()
    const tokens = await Promise.all(Array.from({ length: 8 }, () => prepareFirstStart(config, { withRules })))
    expect(tokens.filter((token) => token !== undefined)).toHaveLength(1)
    expect((await config.versions.list()).items).toHaveLength(withRules ? 1 : 0)
    expect((await config.apiKeys.list()).items).toHaveLength(1)
  })
})
