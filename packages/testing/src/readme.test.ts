import { readFileSync } from 'node:fs'
import { memoryStore } from '@sluice/core'
import { describe, expect, it, test } from 'vitest'
import * as kit from './index.ts'
import { expectSameStores, ReferenceStore, storeSuite } from './index.ts'

// The example of the README, word for word; the last test says so.
storeSuite('my store', { create: (clock) => memoryStore({ clock }) })

test('my store answers random operations as the reference store does', async () => {
  await expectSameStores((clock) => ({ one: new ReferenceStore(clock), other: memoryStore({ clock }) }))
})

describe('the README', () => {
  const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')
  const readme = read('../README.md')

  it('shows the example that runs here', () => {
    const [, example] = /\/\/ my-store-suite\.ts\n[\s\S]*?\n\n([\s\S]*?)```/.exec(readme) ?? []
    expect(example).toContain('storeSuite(')
    expect(read('./readme.test.ts')).toContain(example)
  })

  it('names everything that is exported', () => {
    expect(Object.keys(kit).filter((name) => !readme.includes(`\`${name}\``))).toEqual([])
  })
})
