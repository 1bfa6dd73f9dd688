import { existsSync } from 'node:fs'
import { relative } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { platform } from './clock-and-random.ts'
import type { Notifier } from './config-store.ts'
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
    'rejects %j and says what it takes',
    async (url) => {
      const opened = openConfigStore(url)
      await expect(opened).rejects.toMatchObject({ code: 'SLUICE_INVALID_OPTION' })
      await expect(opened).rejects.toThrow(/expected sqlite:<path>/)
      await expect(opened).rejects.not.toThrow('secret')
    },
  )

  it.each(['deadlineMs', 'connections', 'pollMs', 'keepaliveMs'])('rejects a senseless %s', async (name) => {
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

  it.each([0, 129, 1.5, '64'])('rejects %j as the length of networks', async (value) => {
    const opened = openConfigStore(':memory:', { ipv6PrefixLength: value as number })
    await expect(opened).rejects.toMatchObject({
      code: 'SLUICE_INVALID_OPTION',
      expected: 'a whole number from 1 to 128',
    })
  })

  it.each([[{}], [[{}]], [[undefined]]])('rejects %j as notifiers', async (value) => {
    const opened = openConfigStore(':memory:', { notifiers: value as unknown as readonly Notifier[] })
    await expect(opened).rejects.toMatchObject({ code: 'SLUICE_INVALID_OPTION' })
  })
})

describe('notifiers of a store', () => {
  it('are notified of every change that is committed, and of nothing else', async () => {
    let told = 0
    const announce = (): Promise<boolean> => {
      told++
      return Promise.resolve(true)
    }
    const store = await openConfigStore(':memory:', { notifiers: [{ announce }, { announce }] })
    onTestFinished(() => store.close())
    expect(told).toBe(0)
    const entry = { dimension: 'user', entity: 'u1', resource: '*', terms: { limit: 1 } }
    await store.versions.edit(() => ({ rules: [] }), ALICE)
    await store.overrides.put(entry, ALICE)
    await store.overrides.putAll([entry], ALICE)
    await store.incident.set({ active: true }, ALICE)
    expect(told).toBe(8)
    await expect(store.overrides.put(entry, ALICE, { ifRevision: 0 })).rejects.toThrow('SLUICE_CONFLICT')
    await expect(store.versions.edit(() => ({ rules: [] }), ALICE, 7)).rejects.toThrow('SLUICE_CONFLICT')
    await store.overrides.list()
    expect(told).toBe(8)
  })

  it('do not hold up who changes something, and are waited for when it is closed', async () => {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const store = await openConfigStore(':memory:', {
      notifiers: [{ announce: () => promise }, { announce: () => Promise.reject(new Error('broken')) }],
    })
    await store.incident.set({ active: true }, ALICE)
    let isClosed = false
    const closed = store.close().then(() => {
      isClosed = true
    })
    await platform.nextTurn()
    expect(isClosed).toBe(false)
    resolve(true)
    await closed
    expect(isClosed).toBe(true)
  })
})

function inBase62(value: bigint, length: number): string {
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  let text = ''
  for (let rest = value; text.length < length; rest /= 62n) text = digits[Number(rest % 62n)] + text
  return text
}
