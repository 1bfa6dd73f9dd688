import type { ConfigStore } from '@sluice/config-store'
import { openConfigStore } from '@sluice/config-store'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ReconnectingConfigStore } from './reconnecting-config-store.ts'

/** A database that is unreachable for the first attempts. */
function lateBy(failures: number): { config: ReconnectingConfigStore; tries: () => number } {
  let tries = 0
  const config = new ReconnectingConfigStore(() => {
    tries++
    return tries > failures ? openConfigStore('sqlite::memory:') : Promise.reject(new Error('away'))
  })
  onTestFinished(() => config.close())
  return { config, tries: () => tries }
}

describe('a configuration store that comes late', () => {
  it('is opened by its first use, once for all', async () => {
    const { config, tries } = lateBy(0)
    expect(tries()).toBe(0)
    const author = { name: 'ada' }
    await Promise.all([config.versions.list(), config.audit.list(), config.secrets.get('x')])
    await config.versions.edit(() => ({ rules: [] }), author)
    await config.overrides.put({ dimension: 'user', entity: 'u1', resource: '*', terms: { limit: 5 } }, author)
    expect((await config.overrides.list()).items).toHaveLength(1)
    expect(await config.numbers.take({ name: 'n', count: 2, holder: 'h', leaseMs: 1000 })).toBe(0)
    expect((await config.audit.list()).items.map(({ action }) => action)).toContain('override.put')
    expect(tries()).toBe(1)
  })

  it('says so while it cannot be opened, and tries again at the next use', async () => {
    const { config, tries } = lateBy(2)
    await expect(config.versions.list()).rejects.toThrow('away')
    await expect(config.feed.head()).rejects.toThrow('away')
    expect(await config.feed.head()).toBeGreaterThanOrEqual(0)
    expect(tries()).toBe(3)
  })

  it('hands the feed on', async () => {
    const { config } = lateBy(0)
    const changed = Promise.withResolvers<void>()
    const stop = await config.feed.watch(changed.resolve, () => undefined)
    await config.versions.edit(() => ({ rules: [] }), { name: 'ada' })
    await changed.promise
    const versions: unknown[] = []
    for await (const part of config.feed.load()) versions.push(part.versions?.enforced?.number)
    expect(versions[0]).toBe(1)
    expect((await config.feed.since(0)).position).toBeGreaterThan(0)
    await stop()
  })

  it('is closed with what was opened, also when that is just being done, and stays closed', async () => {
    const opening = Promise.withResolvers<ConfigStore>()
    const config = new ReconnectingConfigStore(() => opening.promise)
    const used = config.versions.list().catch((error: unknown) => error)
    const closing = config.close()
    const real = await openConfigStore('sqlite::memory:')
    opening.resolve(real)
    await closing
    await used
    await expect(real.versions.list()).rejects.toThrow()
    const never = new ReconnectingConfigStore(() => expect.fail('it was opened'))
    await never.close()
    await expect(never.versions.list()).rejects.toThrow('closed')
  })

  it('is no promise in any part', async () => {
    const { config, tries } = lateBy(0)
    expect(await config.versions).toBe(config.versions)
    expect(tries()).toBe(0)
  })
})
