import { appendFile, open, readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { temporaryFolder } from '../waiting.test.support.ts'
import { type CacheReading, CacheWriter, openCache } from './cache-file-format.ts'
import { enforced, version } from './fake-feed.test.support.ts'

const VERSIONS = { enforced: version(3, { rules: [] }), candidate: version(4) }
const LINES = ['["member","user","ärger",{"tier":"gold"}]', '["incident",{"active":true}]']

async function write(path: string, lines: readonly string[] = LINES, nonce = 'n'): Promise<string> {
  const writer = await CacheWriter.begin(path, nonce, { source: 'here', versions: VERSIONS })
  for (const line of lines) await writer.add(`${line}\n`, 1)
  return await writer.commit({ position: 17, currentAt: 99 })
}

/** What is found, read to its end, and closed. */
async function read(path: string): Promise<unknown> {
  const reading = await openCache(path)
  if (reading.state !== 'whole') return reading
  const lines: string[] = []
  for await (const some of reading.cache.lines()) lines.push(...some)
  const { source, versions, position, currentAt } = reading.cache
  await reading.cache.close()
  return { source, versions, position, currentAt, lines }
}

async function stateOf(path: string): Promise<CacheReading['state']> {
  const reading = await openCache(path)
  if (reading.state === 'whole') await reading.cache.close()
  return reading.state
}

describe('the cache file', () => {
  it('gives back what was written', async () => {
    const path = join(await temporaryFolder(), 'deep', 'er', 'config.cache')
    await write(path)
    expect(await read(path)).toEqual({ source: 'here', versions: VERSIONS, position: 17, currentAt: 99, lines: LINES })
  })

  it('may have no entries and no versions', async () => {
    const path = join(await temporaryFolder(), 'c')
    const writer = await CacheWriter.begin(path, 'n', {
      source: '',
      versions: { enforced: undefined, candidate: undefined },
    })
    await writer.commit({ position: 0, currentAt: 0 })
    const versions = { enforced: undefined, candidate: undefined }
    expect(await read(path)).toEqual({ source: '', versions, position: 0, currentAt: 0, lines: [] })
  })

  it('gives back any number of lines of any length, across the edges of what is read at once (property)', async () => {
    const path = join(await temporaryFolder(), 'c')
    const line = fc
      .tuple(fc.constantFrom('x', 'ä', '😀'), fc.nat(70_000))
      .map(([unit, length]) => JSON.stringify(unit.repeat(length)))
    let times = 0
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 8 }), async (lines) => {
        await write(path, lines, `n${times++}`)
        expect(await read(path)).toMatchObject({ lines })
      }),
      { numRuns: 30 },
    )
  })

  it('can be read by its owner only', async () => {
    const path = join(await temporaryFolder(), 'folder', 'c')
    await write(path)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect((await stat(join(path, '..'))).mode & 0o777).toBe(0o700)
  })

  it('is none when there is no file', async () => {
    expect(await openCache(join(await temporaryFolder(), 'none'))).toEqual({ state: 'none' })
  })

  it('stays as it was while another one is written, and when that is given up', async () => {
    const folder = await temporaryFolder()
    const path = join(folder, 'c')
    await write(path)
    const writer = await CacheWriter.begin(path, 'second', { source: 'there', versions: enforced(9) })
    await writer.add('["x",{}]\n', 1)
    expect(await read(path)).toMatchObject({ source: 'here' })
    await writer.abandon()
    expect(await read(path)).toMatchObject({ source: 'here' })
    expect(await readdir(folder)).toEqual(['c'])
  })

  it('that is open stays what it was when another one takes its place', async () => {
    const path = join(await temporaryFolder(), 'c')
    await write(path)
    const reading = await openCache(path)
    if (reading.state !== 'whole') throw new Error(reading.state)
    await write(path, [], 'second')
    const lines: string[] = []
    for await (const some of reading.cache.lines()) lines.push(...some)
    await reading.cache.close()
    expect(lines).toEqual(LINES)
    expect(await read(path)).toMatchObject({ lines: [] })
  })

  it('removes what a writer that died left behind, but not what another one is writing', async () => {
    const folder = await temporaryFolder()
    const path = join(folder, 'c')
    await writeFile(join(folder, 'c.dead.tmp'), 'half')
    await writeFile(join(folder, 'c.alive.tmp'), 'half')
    await writeFile(join(folder, 'other.dead.tmp'), 'half')
    const { mtimeMs } = await stat(join(folder, 'c.alive.tmp'))
    for (const name of ['c.dead.tmp', 'other.dead.tmp']) {
      await utimes(join(folder, name), mtimeMs / 1000 - 700, mtimeMs / 1000 - 700)
    }
    await write(path)
    expect((await readdir(folder)).sort()).toEqual(['c', 'c.alive.tmp', 'other.dead.tmp'])
  })
})

describe('a cache file that is not whole', () => {
  it('is rejected, wherever it is torn', async () => {
    const folder = await temporaryFolder()
    const path = join(folder, 'whole')
    await write(path)
    const bytes = await readFile(path)
    const torn = join(folder, 'torn')
    for (let length = 0; length < bytes.length; length++) {
      await writeFile(torn, bytes.subarray(0, length))
      expect([length, await stateOf(torn)]).toEqual([length, 'refused'])
    }
    await writeFile(torn, bytes)
    expect(await stateOf(torn)).toBe('whole')
  })

  it('is rejected, whichever byte of it is another one', async () => {
    const folder = await temporaryFolder()
    const path = join(folder, 'whole')
    await write(path)
    const bytes = await readFile(path)
    const damaged = join(folder, 'damaged')
    for (let at = 0; at < bytes.length; at++) {
      const copy = Buffer.from(bytes)
      copy[at] = copy[at]! ^ 1
      await writeFile(damaged, copy)
      expect([at, await stateOf(damaged)]).toEqual([at, 'refused'])
    }
  })

  it('is rejected when blocks of it are missing, doubled or empty', async () => {
    const folder = await temporaryFolder()
    const path = join(folder, 'c')
    await write(
      path,
      Array.from({ length: 2000 }, (_, index) => `["member","user","u${index}",{"tier":"gold"}]`),
    )
    const bytes = await readFile(path)
    const broken = join(folder, 'broken')
    for (const [from, to, filling] of [
      [4096, 8192, Buffer.alloc(4096)],
      [4096, 8192, Buffer.alloc(0)],
      [8192, 8192, bytes.subarray(4096, 8192)],
    ] as const) {
      await writeFile(broken, Buffer.concat([bytes.subarray(0, from), filling, bytes.subarray(to)]))
      expect(await stateOf(broken)).toBe('refused')
    }
    await writeFile(broken, bytes)
    await appendFile(broken, '{}\n')
    expect(await stateOf(broken)).toBe('refused')
  })

  it.each([
    ['nothing', '', 'it is torn'],
    ['another text', 'rules:\n  - limit: 5\n', 'it is not a cache file of Sluice'],
    ['another JSON', '{"a":1}\n{"b":2}\n', 'it is not a cache file of Sluice'],
    ['a newer format', '{"format":"sluice-config","version":2}\n', 'another version of this program: its format is 2'],
  ])('is rejected when it is %s', async (_, content, reason) => {
    const path = join(await temporaryFolder(), 'c')
    await writeFile(path, content)
    expect(await openCache(path)).toEqual({ state: 'refused', reason: expect.stringContaining(reason) })
  })

  it('leaves no file open when it is rejected', async () => {
    const path = join(await temporaryFolder(), 'c')
    await writeFile(path, 'foreign\n')
    const opened = async (): Promise<number> => {
      const handle = await open(path)
      const { fd } = handle
      await handle.close()
      return fd
    }
    const before = await opened()
    for (let times = 0; times < 20; times++) await openCache(path)
    expect(await opened()).toBe(before)
  })
})
