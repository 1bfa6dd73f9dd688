import type { ConfigStore } from '@sluice/config-store'
import { openConfigStore } from '@sluice/config-store'
import { describe, expect, it, onTestFinished } from 'vitest'
import { FIRST_RULES, prepareFirstStart } from './first-start.ts'

async function emptyConfig(): Promise<ConfigStore> {
  const config = await openConfigStore('sqlite::memory:')
  onTestFinished(() => config.close())
  return config
}

const noWait = { sleep: () => expect.fail('nothing is to be waited for'), withRules: true }

describe('the first start', () => {
  it('enforces rules and makes a key that may do everything', async () => {
    const config = await emptyConfig()
    const token = await prepareFirstStart(config, noWait)
    const { enforced } = await config.versions.current()
    expect(enforced).toMatchObject({ number: 1, createdBy: 'first start' })
    expect((await config.versions.get(1))?.ruleSet).toEqual(FIRST_RULES)
    expect(await config.apiKeys.verify(token!)).toMatchObject({ role: 'admin', name: 'first' })
  })

  it('is only once: later starts change nothing', async () => {
    const config = await emptyConfig()
    await prepareFirstStart(config, noWait)
    const before = await config.feed.head()
    expect(await prepareFirstStart(config, noWait)).toBeUndefined()
    expect(await config.feed.head()).toBe(before)
  })

  it('leaves rules alone that are there, drafts among them', async () => {
    const config = await emptyConfig()
    await config.versions.create({ rules: [] }, { name: 'ada' })
    const waits: number[] = []
    const sleep = (delayMs: number): Promise<void> => {
      waits.push(delayMs)
      return Promise.resolve()
    }
    const token = await prepareFirstStart(config, { sleep, withRules: true })
    expect((await config.versions.current()).enforced).toBeUndefined()
    expect(await config.apiKeys.verify(token!)).toMatchObject({ role: 'admin' })
    // Another node might have been about to make the key.
    expect(waits).toEqual([1000])
  })

  it('makes only a key when the rules come from elsewhere', async () => {
    const config = await emptyConfig()
    expect(await prepareFirstStart(config, { ...noWait, withRules: false })).toMatch(/^slk_/)
    expect((await config.versions.list()).items).toEqual([])
  })

  it('of many nodes at once makes one version and one key', async () => {
    const config = await emptyConfig()
    // The others come after whoever wrote the rules.
    const sleep = async (): Promise<void> => {
      while ((await config.apiKeys.list()).items.length === 0) await Promise.resolve()
    }
    const tokens = await Promise.all(
      Array.from({ length: 8 }, () => prepareFirstStart(config, { sleep, withRules: true })),
    )
    expect(tokens.filter((token) => token !== undefined)).toHaveLength(1)
    expect((await config.versions.list()).items).toHaveLength(1)
    expect((await config.apiKeys.list()).items).toHaveLength(1)
  })
})
