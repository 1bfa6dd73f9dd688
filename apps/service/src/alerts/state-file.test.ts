import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { StateFile } from './state-file.ts'

const NO_ALERTS = { silences: {}, alerts: [], outbox: [] }

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
  it('begins empty, and creates its folder with the first part', async () => {
    const file = await open()
    expect(file.part('node').load()).toBeUndefined()
    await file.part('node').save('n1')
    expect(file.part('node').load()).toBe('n1')
    expect((await open()).part('node').load()).toBe('n1')
  })

  it('keeps parts apart', async () => {
    const file = await open()
    await Promise.all([file.part('node').save('n1'), file.part('monitor').save(NO_ALERTS)])
    await file.part('node').save('n3')
    const again = await open()
    expect([again.part('node').load(), again.part('monitor').load()]).toEqual(['n3', NO_ALERTS])
  })

  it('is readable by its owner only, and leaves no temporary file', async () => {
    await (await open()).part('node').save('n1')
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect(await readdir(join(folder, 'data'))).toEqual(['alerts.json'])
  })

  it('keeps the last of many concurrent saves', async () => {
    const file = await open()
    await Promise.all(Array.from({ length: 50 }, (_, number) => file.part('node').save(`n${number}`)))
    expect((await open()).part('node').load()).toBe('n49')
  })

  it('resolves when the value is on disk', async () => {
    const file = await open()
    const first = file.part('node').save('n1')
    const second = file.part('node').save('n2')
    await first
    const third = file.part('node').save('n3')
    await second
    expect(JSON.parse(await readFile(path, 'utf8')).parts.node).toMatch(/^n[23]$/)
    await third
    expect(JSON.parse(await readFile(path, 'utf8')).parts.node).toBe('n3')
  })

  it('rejects when it cannot be written, and writes the part with the next one', async () => {
    const file = await open()
    // A file blocks the path of the folder.
    await writeFile(join(folder, 'data'), '')
    await expect(file.part('node').save('n1')).rejects.toMatchObject({ code: expect.stringMatching(/EEXIST|ENOTDIR/) })
    await rm(join(folder, 'data'))
    await file.part('monitor').save(NO_ALERTS)
    const again = await open()
    expect([again.part('node').load(), again.part('monitor').load()]).toEqual(['n1', NO_ALERTS])
  })

  it.each([
    ['torn', '{"format":"sluice-alerts","version":1,"par'],
    ['empty', ''],
    ['of another kind', '{"format":"other","version":1,"parts":{}}'],
    ['of another version', '{"format":"sluice-alerts","version":2,"parts":{}}'],
    ['no object', 'null'],
  ])('that is %s is renamed and reported', async (_, text) => {
    await (await open()).part('node').save('n1')
    await writeFile(path, text)
    const damaged: string[] = []
    const file = await open(damaged)
    expect(file.part('node').load()).toBeUndefined()
    expect(damaged).toEqual([`${path}.damaged`])
    expect(await readFile(`${path}.damaged`, 'utf8')).toBe(text)
    await file.part('node').save('n2')
    expect((await open()).part('node').load()).toBe('n2')
  })

  it('that cannot be read is an error', async () => {
    path = folder
    await expect(open()).rejects.toMatchObject({ code: 'EISDIR' })
  })
})
