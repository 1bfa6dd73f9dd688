import { memoryStore } from '@sluice/core'
import { PolicyEngine } from '@sluice/core/policy'
import { expect, it } from 'vitest'
import { engineTarget, fileConfig, followConfig, importEnvoyYaml, openConfigStore } from './index.ts'

const engine = new PolicyEngine({ store: memoryStore() })
const target = engineTarget(engine)
const feed = () => Promise.reject(new Error('the database is not opened'))

// A misspelt option must not be taken for one that was left out.
it.each<[string, (options: object) => unknown, object, string]>([
  ['openConfigStore', (options) => openConfigStore('sqlite::memory:', options), { deadlineMS: 1 }, '"deadlineMs"'],
  ['fileConfig', (options) => fileConfig('missing.yaml', { target, ...options }), { settleMS: 1 }, '"settleMs"'],
  ['followConfig', (options) => followConfig({ feed, target, ...options }), { notifier: [] }, '"notifiers"'],
  ['followConfig, cache', (cache) => followConfig({ feed, target, cache: cache as never }), { paths: 'a' }, '"path"'],
  ['engineTarget', (options) => engineTarget(engine, options), { other: {} }, '"others"'],
  ['importEnvoyYaml', (options) => importEnvoyYaml([], options), { mergeDomain: true }, '"mergeDomains"'],
])('%s throws for an unknown option and names the nearest one', async (_, create, options, nearest) => {
  await expect(async () => await create(options)).rejects.toThrow(nearest)
})
