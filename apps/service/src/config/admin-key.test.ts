import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ConfigStore } from '@sluice/config-store'
import { openConfigStore } from '@sluice/config-store'
import { systemRandom } from '@sluice/core'
import { Logger, LogOutput } from '@sluice/runtime'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { FirstKeyParts } from './admin-key.ts'
import { createFirstKey } from './admin-key.ts'

const warned: string[] = []
const stream = {
  write: (text: string, written: () => void) => {
    warned.push(JSON.parse(text).message)
    written()
    return true
  },
  on: () => undefined,
  off: () => undefined,
}

function partsOf(file?: string): FirstKeyParts {
  warned.length = 0
  return { file, secureRandom: systemRandom, log: new Logger(new LogOutput({ stream, nowMs: () => 0 })) }
}

async function emptyConfig(): Promise<ConfigStore> {
  const config = await openConfigStore('sqlite::memory:')
  onTestFinished(() => config.close())
  return config
}

async function freshFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-admin-key-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

describe('the first key', () => {
  it('has the role admin, and is made once', async () => {
    const config = await emptyConfig()
    const token = await createFirstKey(config, partsOf())
    expect(await config.apiKeys.verify(token!)).toMatchObject({ role: 'admin', name: 'first' })
    const before = await config.feed.head()
    expect(await createFirstKey(config, partsOf())).toBeUndefined()
    expect(await config.feed.head()).toBe(before)
  })

  it('is not made when the only key there was has ended', async () => {
    const config = await emptyConfig()
    const { apiKey } = await config.apiKeys.create({ name: 'k', role: 'editor' }, { name: 'ada' })
    await config.apiKeys.revoke(apiKey.id, { name: 'ada' })
    expect(await createFirstKey(config, partsOf())).toBeUndefined()
  })

  it('is one key when many nodes start at once, without a file, with one file, or with a file each', async () => {
    const folder = await freshFolder()
    const files = [() => undefined, () => join(folder, 'shared'), (node: number) => join(folder, `own-${node}`)]
    for (const fileOf of files) {
      const config = await emptyConfig()
      const parts = Array.from({ length: 8 }, (_, node) => partsOf(fileOf(node)))
      const tokens = await Promise.all(parts.map((part) => createFirstKey(config, part)))
      expect(tokens.filter((token) => token !== undefined)).toHaveLength(1)
      expect((await config.apiKeys.list()).items).toHaveLength(1)
    }
    // Only the file with the key that was made is left of those that are not shared.
    const left = await readdir(folder)
    expect([left.length, left.includes('shared')]).toEqual([2, true])
  })

  it('that was written by a start that ended before it was made is made by the next', async () => {
    const config = await emptyConfig()
    const file = join(await freshFolder(), 'key')
    await createFirstKey(config, partsOf(file))
    const written = (await readFile(file, 'utf8')).trim()
    const empty = await emptyConfig()
    expect(await createFirstKey(empty, partsOf(file))).toBe(written)
    expect(await empty.apiKeys.verify(written)).toMatchObject({ role: 'admin' })
  })

  it('in a file is left alone when it is valid, and warned of when it is not', async () => {
    const config = await emptyConfig()
    const file = join(await freshFolder(), 'key')
    await createFirstKey(config, partsOf(file))
    expect([await createFirstKey(config, partsOf(file)), warned]).toEqual([undefined, []])
    await writeFile(file, `slk_${'a'.repeat(12)}_${'b'.repeat(43)}`)
    expect(await createFirstKey(config, partsOf(file))).toBeUndefined()
    expect(warned).toEqual(['the key in the admin key file is not valid: there are other API keys already'])
    expect(await readFile(file, 'utf8')).toContain('slk_aaaa')
  })
})
