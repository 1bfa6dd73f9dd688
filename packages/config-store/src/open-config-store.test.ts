import { existsSync } from 'node:fs'
import { relative } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { openConfigStore } from './open-config-store.ts'
import { newFile } from './sql/driver.test.support.ts'

const ALICE = { name: 'alice' }

describe('openConfigStore', () => {
  it.each(['sqlite:', 'SQLite:', 'sqlite://', ''])('opens a SQLite file by "%s" and a path', async (scheme) => {
    const path = await newFile()
    const store = await openConfigStore(`${scheme}${path}`)
    onTestFinished(() => store.close())
    expect(existsSync(path)).toBe(true)
  })

  it('takes a relative path as it is', async () => {
    const path = await newFile()
    const store = await openConfigStore(`sqlite:${relative('.', path)}`)
    onTestFinished(() => store.close())
    expect(existsSync(path)).toBe(true)
  })

  it('has a database in memory for who wants one, each its own', async () => {
    const [one, other] = [await openConfigStore('sqlite::memory:'), await openConfigStore(':memory:')]
    onTestFinished(() => one.close())
    onTestFinished(() => other.close())
    await one.incident.set({ active: true }, ALICE)
    expect((await other.incident.get()).entry).toEqual({ active: false })
    expect(existsSync(':memory:')).toBe(false)
  })

  it.each(['mysql://u:secret@h/d', 'http://h', 'sqlite:', '', 'redis://h', undefined as unknown as string])(
    'refuses %j and says what it takes',
    async (url) => {
      const opened = openConfigStore(url)
      await expect(opened).rejects.toMatchObject({ code: 'SLUICE_INVALID_OPTION' })
      await expect(opened).rejects.toThrow(/expected sqlite:<path>/)
      await expect(opened).rejects.not.toThrow('secret')
    },
  )

  it.each(['deadlineMs', 'connections', 'pollMs', 'keepaliveMs'])('refuses a senseless %s', async (name) => {
    for (const value of [0, -1, 1.5, Number.NaN, '5']) {
      const opened = openConfigStore(':memory:', { [name]: value })
      await expect(opened).rejects.toMatchObject({ code: 'SLUICE_INVALID_OPTION', received: value })
    }
  })

  it('says what to install when the package of PostgreSQL is missing', async () => {
    vi.doMock('pg', () => {
      throw new Error('Cannot find package')
    })
    onTestFinished(() => {
      vi.doUnmock('pg')
    })
    const opened = openConfigStore('postgres://u:p@127.0.0.1:1/d')
    await expect(opened).rejects.toMatchObject({ code: 'SLUICE_INVALID_OPTION' })
    await expect(opened).rejects.toThrow('npm install pg')
  })

  it('takes time and chance from its options', async () => {
    const store = await openConfigStore(':memory:', {
      nowMs: () => 12_345.6,
      randomBytes: (count) => new Uint8Array(count).fill(255),
    })
    onTestFinished(() => store.close())
    const { apiKey, token } = await store.apiKeys.create({ name: 'k', role: 'admin' }, ALICE)
    expect(apiKey.createdAt).toBe(12_345)
    // 2^72 - 1 and 2^256 - 1 in base 62.
    expect(token).toBe(`slk_${inBase62(2n ** 72n - 1n, 12)}_${inBase62(2n ** 256n - 1n, 43)}`)
  })

  it('can be closed by leaving a block', async () => {
    const store = await openConfigStore(':memory:')
    {
      await using closing = store
      expect(await closing.feed.head()).toBe(1)
    }
    await expect(store.feed.head()).rejects.toMatchObject({ code: 'SLUICE_CLOSED' })
  })
})

function inBase62(value: bigint, length: number): string {
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  let text = ''
  for (let rest = value; text.length < length; rest /= 62n) text = digits[Number(rest % 62n)] + text
  return text
}
