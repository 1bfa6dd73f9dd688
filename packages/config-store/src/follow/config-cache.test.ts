import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { FakeClock, FakeTimers, seededRandom } from '@sluice/testing'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { EntryChange } from '../config-store.ts'
import { temporaryFolder, until } from '../waiting.test.support.ts'
import { type CacheOptions, ConfigCache } from './config-cache.ts'
import type { ConfigEvent } from './config-follower.ts'
import { decodeEntry, encodeEntryKey } from './entry-encoding.ts'
import { enforced, memberOf, overrideOf, removed } from './fake-feed.test.support.ts'

async function scene(folder?: string) {
  const place = folder ?? (await temporaryFolder())
  const path = join(place, 'config.cache')
  const clock = new FakeClock()
  const timers = new FakeTimers(clock)
  const events: ConfigEvent[] = []
  let seed = 0
  const open = (options: Partial<CacheOptions> = {}): ConfigCache => {
    const ports = {
      clock,
      timers,
      random: seededRandom(seed++),
      observe: (event: ConfigEvent) => void events.push(event),
    }
    const cache = new ConfigCache({ path, ...options }, ports)
    onTestFinished(() => cache.close())
    return cache
  }
  return { folder: place, path, clock, timers, events, open }
}

const AT = 1_000_000

async function fill(cache: ConfigCache, changes: readonly EntryChange[], position = 1): Promise<void> {
  const rewrite = await cache.rewrite(enforced(1))
  await rewrite.add(changes)
  await rewrite.end({ position, currentAt: AT })
}

async function contentOf(cache: ConfigCache): Promise<unknown> {
  const reading = await cache.open()
  if (reading.state !== 'whole') return reading
  const changes: EntryChange[] = []
  for await (const lines of reading.cache.lines()) changes.push(...lines.map((line) => decodeEntry(line)!))
  const { versions, position, currentAt } = reading.cache
  await reading.cache.close()
  changes.sort((one, other) => (encodeEntryKey(one) < encodeEntryKey(other) ? -1 : 1))
  return { version: versions.enforced?.number, position, currentAt, changes }
}

const state = (position: number, number = 1) => ({ versions: enforced(number), position, currentAt: AT + position })

describe('the cache', () => {
  it('holds everything after a rewrite', async () => {
    const { open } = await scene()
    const cache = open()
    expect(cache.isLost).toBe(true)
    await fill(cache, [overrideOf('a', 1), memberOf('a', 'gold')])
    expect(cache.isLost).toBe(false)
    expect(await contentOf(cache)).toEqual({
      version: 1,
      position: 1,
      currentAt: AT,
      changes: [memberOf('a', 'gold'), overrideOf('a', 1)],
    })
  })

  it('has no entries that were removed, in a rewrite or later', async () => {
    const { open } = await scene()
    const cache = open()
    await fill(cache, [overrideOf('a', 1), removed(overrideOf('b', 1)), overrideOf('c', 1)])
    cache.note([removed(overrideOf('a', 1)), overrideOf('c', 3), overrideOf('d', 4)], state(2, 5))
    await cache.flush()
    expect(await contentOf(cache)).toEqual({
      version: 5,
      position: 2,
      currentAt: AT + 2,
      changes: [overrideOf('c', 3), overrideOf('d', 4)],
    })
  })

  it('writes at most once in 5 seconds, with all that came meanwhile', async () => {
    const { open, timers } = await scene()
    const cache = open()
    await fill(cache, [])
    for (let position = 2; position <= 50; position++) {
      cache.note([overrideOf(`u${position}`, 1)], state(position))
      await timers.advance(100)
      expect(await contentOf(cache)).toMatchObject({ position: 1 })
    }
    await timers.advance(100)
    await cache.flush()
    expect(await contentOf(cache)).toMatchObject({ position: 50 })
    expect(timers.pending).toBe(0)
  })

  it('rests 20 times as long as a write took', async () => {
    const { open, timers, clock, path } = await scene()
    const cache = open()
    await fill(cache, [])
    cache.note([overrideOf('a', 1)], state(2))
    const flushed = cache.flush()
    await timers.advance(0)
    clock.advance(3000)
    await flushed
    cache.note([overrideOf('b', 1)], state(3))
    for (let second = 0; second < 59; second++) {
      await timers.advance(1000)
      expect([timers.pending, await contentOf(cache)]).toMatchObject([1, { position: 2 }])
    }
    await timers.advance(1000)
    await until('it is written', async () => (await readFile(path, 'utf8')).includes('"position":3'))
  })

  it('is the same as if it was made in one go (property)', async () => {
    const names = fc.constantFrom('a', 'b', 'c', '",{"', 'ä')
    const change = fc.oneof(
      fc.tuple(names, fc.nat(9)).map(([name, limit]) => overrideOf(name, limit)),
      names.map((name) => removed(overrideOf(name, 0))),
      fc.tuple(names, names).map(([name, tier]) => memberOf(name, tier)),
    )
    const folder = await temporaryFolder()
    await fc.assert(
      fc.asyncProperty(fc.array(change), fc.array(fc.array(change), { maxLength: 4 }), async (first, later) => {
        const { open } = await scene(folder)
        const cache = open()
        const model = new Map<string, EntryChange>()
        const remember = (changes: readonly EntryChange[]): void => {
          for (const one of changes) {
            if (one.entry === undefined) model.delete(encodeEntryKey(one))
            else model.set(encodeEntryKey(one), one)
          }
        }
        // A load has every entry once.
        const loaded = [...new Map(first.map((one) => [encodeEntryKey(one), one])).values()]
        await fill(cache, loaded)
        remember(loaded)
        for (const [index, changes] of later.entries()) {
          cache.note(changes, state(2 + index))
          remember(changes)
          await cache.flush()
        }
        const expected = [...model.values()].sort((one, other) =>
          encodeEntryKey(one) < encodeEntryKey(other) ? -1 : 1,
        )
        expect(await contentOf(cache)).toMatchObject({ changes: expected, position: 1 + later.length })
        await cache.close()
      }),
      { numRuns: 40 },
    )
  })

  it('writes what is left when it is closed, and nothing afterwards', async () => {
    const { open, timers } = await scene()
    const cache = open()
    await fill(cache, [])
    cache.note([overrideOf('a', 1)], state(2))
    await cache.close()
    expect(await contentOf(cache)).toMatchObject({ position: 2 })
    expect(timers.pending).toBe(0)
  })

  it('a rewrite that is cancelled leaves what was there', async () => {
    const { open, folder } = await scene()
    const cache = open()
    await fill(cache, [overrideOf('a', 1)])
    const rewrite = await cache.rewrite(enforced(2))
    await rewrite.add([overrideOf('b', 1)])
    await rewrite.cancel()
    expect(await contentOf(cache)).toMatchObject({ version: 1, changes: [overrideOf('a', 1)] })
    expect(await readdir(folder)).toEqual(['config.cache'])
    expect(cache.isLost).toBe(true)
  })
})

describe('a cache file that cannot be used', () => {
  it('of another database is rejected', async () => {
    const { open } = await scene()
    await fill(open({ source: 'postgres://staging' }), [])
    const cache = open({ source: 'postgres://production' })
    expect(await cache.open()).toEqual({ state: 'refused', reason: expect.stringContaining('postgres://staging') })
  })

  it('that was damaged is not merged with: it is reported, and lost until it is rewritten', async () => {
    const { open, path, events } = await scene()
    const cache = open()
    await fill(cache, [overrideOf('a', 1)])
    await writeFile(path, 'rubbish')
    cache.note([overrideOf('b', 1)], state(2))
    await cache.flush()
    expect(cache.isLost).toBe(true)
    expect(events).toMatchObject([{ type: 'cache-failed', error: { code: 'SLUICE_CONFLICT' } }])
    expect(await readFile(path, 'utf8')).toBe('rubbish')
    await fill(cache, [overrideOf('a', 1), overrideOf('b', 1)], 2)
    expect(await contentOf(cache)).toMatchObject({ position: 2 })
  })

  it('that is gone is not merged with', async () => {
    const { open, path } = await scene()
    const cache = open()
    await fill(cache, [overrideOf('a', 1)])
    await rm(path)
    cache.note([overrideOf('b', 1)], state(2))
    await cache.flush()
    expect([cache.isLost, await cache.open()]).toEqual([true, { state: 'none' }])
  })

  it('in a folder that is a file: reported, and nothing rejects', async () => {
    const { folder, events, open } = await scene()
    await writeFile(join(folder, 'file'), '')
    const cache = open({ path: join(folder, 'file', 'config.cache') })
    await fill(cache, [overrideOf('a', 1)])
    cache.note([overrideOf('b', 1)], state(2))
    await cache.close()
    expect(events).toMatchObject([{ type: 'cache-failed' }])
    expect(await cache.open()).toMatchObject({ state: 'refused', reason: expect.stringContaining('ENOTDIR') })
  })

  it('for a time is written afterwards, with nothing missing', async () => {
    const { path, open, timers, events } = await scene()
    const cache = open()
    await fill(cache, [overrideOf('a', 1)])
    // In the way of the next write, and of no other.
    const draws = seededRandom(0)
    const names = [1, 2].map(() => [draws.nextUint32(), draws.nextUint32()].map((draw) => draw.toString(36)).join(''))
    await writeFile(`${path}.${names[1]}.tmp`, '')
    cache.note([overrideOf('b', 1), overrideOf('c', 1)], state(2))
    const failed = cache.flush()
    await timers.advance(0)
    // While it is being written.
    cache.note([overrideOf('c', 3)], state(3))
    await failed
    expect(events).toMatchObject([{ type: 'cache-failed', error: { code: 'EEXIST' } }])
    expect(await contentOf(cache)).toMatchObject({ position: 1 })
    expect(timers.pending).toBe(1)
    await cache.flush()
    expect(await contentOf(cache)).toMatchObject({
      position: 3,
      changes: [overrideOf('a', 1), overrideOf('b', 1), overrideOf('c', 3)],
    })
  })
})

describe('two processes with one cache file', () => {
  it('take over what the other wrote when it is as new, and go on from it', async () => {
    const { open } = await scene()
    const one = open()
    const other = open()
    await fill(one, [overrideOf('a', 1)])
    await fill(other, [overrideOf('a', 1)])
    for (let position = 2; position < 8; position++) {
      const change = overrideOf(`u${position}`, position)
      one.note([change], state(position))
      other.note([change], state(position))
      const [first, second] = position % 2 === 0 ? [one, other] : [other, one]
      await first.flush()
      await second.flush()
    }
    expect([one.isLost, other.isLost]).toEqual([false, false])
    const expected = [2, 3, 4, 5, 6, 7].map((position) => overrideOf(`u${position}`, position))
    expect(await contentOf(one)).toMatchObject({ position: 7, changes: [overrideOf('a', 1), ...expected] })
  })

  it('never put together what one has and the other is missing', async () => {
    const { open, events } = await scene()
    const one = open()
    const other = open()
    await fill(one, [overrideOf('a', 1)], 1)
    one.note([overrideOf('b', 2)], state(2))
    await one.flush()
    await fill(other, [overrideOf('a', 1)], 1)
    one.note([overrideOf('c', 3)], state(3))
    await one.flush()
    expect(one.isLost).toBe(true)
    expect(events).toMatchObject([{ type: 'cache-failed' }])
    expect(await contentOf(one)).toMatchObject({ position: 1, changes: [overrideOf('a', 1)] })
  })
})
