import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { StateFile } from './state-file.ts'

let folder: string
let path: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-alerts-'))
  path = join(folder, 'data', 'alerts.json')
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
})

function open(damaged: string[] = []): Promise<StateFile> {
  return StateFile.open(path, (asidePath) => damaged.push(asidePath))
}

describe('a state file', () => {
  it('begins empty, and makes its folder with the first part', async () => {
    const file = await open()
    expect(file.get('monitor')).toBeUndefined()
    await file.put('monitor', { a: 1 })
    expect(file.get('monitor')).toEqual({ a: 1 })
    expect((await open()).get('monitor')).toEqual({ a: 1 })
  })

  it('keeps parts apart', async () => {
    const file = await open()
    await Promise.all([file.put('monitor', [1]), file.put('deliveries', [2])])
    await file.put('monitor', [3])
    const again = await open()
    expect([again.get('monitor'), again.get('deliveries')]).toEqual([[3], [2]])
  })

  it('can be read by its owner only, and leaves nothing beside it', async () => {
    await (await open()).put('monitor', 1)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect(await readdir(join(folder, 'data'))).toEqual(['alerts.json'])
  })

  it('has what was put last, however many puts there are at once', async () => {
    const file = await open()
    await Promise.all(Array.from({ length: 50 }, (_, number) => file.put('monitor', number)))
    expect((await open()).get('monitor')).toBe(49)
  })

  it('resolves when what was put is on disk', async () => {
    const file = await open()
    const first = file.put('monitor', 1)
    const second = file.put('monitor', 2)
    await first
    const third = file.put('monitor', 3)
    await second
    expect(JSON.parse(await readFile(path, 'utf8')).parts.monitor).toBeGreaterThanOrEqual(2)
    await third
    expect(JSON.parse(await readFile(path, 'utf8')).parts.monitor).toBe(3)
  })

  it('says when it could not be written, and writes it with the next part', async () => {
    const file = await open()
    // A file stands where the folder has to be.
    await writeFile(join(folder, 'data'), '')
    await expect(file.put('monitor', 1)).rejects.toMatchObject({ code: expect.stringMatching(/EEXIST|ENOTDIR/) })
    await rm(join(folder, 'data'))
    await file.put('deliveries', 2)
    const again = await open()
    expect([again.get('monitor'), again.get('deliveries')]).toEqual([1, 2])
  })

  it.each([
    ['torn', '{"format":"sluice-alerts","version":1,"par'],
    ['empty', ''],
    ['of another kind', '{"format":"other","version":1,"parts":{}}'],
    ['of another version', '{"format":"sluice-alerts","version":2,"parts":{}}'],
    ['no object', 'null'],
  ])('that is %s is put aside, and told', async (_, text) => {
    await (await open()).put('monitor', 1)
    await writeFile(path, text)
    const damaged: string[] = []
    const file = await open(damaged)
    expect(file.get('monitor')).toBeUndefined()
    expect(damaged).toEqual([`${path}.damaged`])
    expect(await readFile(`${path}.damaged`, 'utf8')).toBe(text)
    await file.put('monitor', 2)
    expect((await open()).get('monitor')).toBe(2)
  })

  it('that cannot be read is an error', async () => {
    path = folder
    await expect(open()).rejects.toMatchObject({ code: 'EISDIR' })
  })
})
