import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import type { DataFolder } from './data-folder.ts'
import { dataFolder, lockDataFolder } from './data-folder.ts'

async function freshFolder(): Promise<DataFolder> {
  const parent = await mkdtemp(join(tmpdir(), 'sluice-data-'))
  onTestFinished(() => rm(parent, { recursive: true, force: true }))
  return dataFolder(join(parent, 'a', 'b'))
}

it('is made, for this user alone', async () => {
  const folder = await freshFolder()
  const { unlock } = await lockDataFolder(folder)
  expect((await stat(folder.path)).mode & 0o777).toBe(0o700)
  expect(await readFile(folder.holder, 'utf8')).toContain(`process ${process.pid} on `)
  await unlock()
})

it.each(['/proc/sluice', '/proc/sluice/data'])('is not made in %s, where no folder can be made', async (path) => {
  await expect(lockDataFolder(dataFolder(path))).rejects.toMatchObject({ code: 'SLUICE_SERVICE_DATA_DIR_UNUSABLE' })
})

it('is not made in the place of a file', async () => {
  const folder = await freshFolder()
  await mkdir(dirname(folder.path), { recursive: true })
  await writeFile(folder.path, '')
  await expect(lockDataFolder(folder)).rejects.toMatchObject({ code: 'SLUICE_SERVICE_DATA_DIR_UNUSABLE' })
  expect(await readFile(folder.path, 'utf8')).toBe('')
})

it('makes its files private, including existing ones, and leaves other files as they are', async () => {
  const folder = await freshFolder()
  await mkdir(folder.path, { recursive: true })
  const found = ['config.db', 'config.db-wal', 'last-good-config-1', 'alerts.json', 'lock', 'theirs', 'configuration']
  for (const name of found) {
    await writeFile(join(folder.path, name), '')
    await chmod(join(folder.path, name), 0o644)
  }
  const { unlock } = await lockDataFolder(folder)
  const modes = await modesIn(folder.path)
  await unlock()
  const { theirs, configuration, ...own } = modes
  expect([theirs, configuration]).toEqual([0o644, 0o644])
  expect(Object.keys(own)).toContain('lock-holder')
  expect(Object.values(own)).toEqual(Object.keys(own).map(() => 0o600))
})

async function modesIn(path: string): Promise<Record<string, number>> {
  const modes: Record<string, number> = {}
  for (const name of await readdir(path)) modes[name] = (await stat(join(path, name))).mode & 0o777
  return modes
}

it('is had by one at a time, and by the next when it was given back', async () => {
  const folder = await freshFolder()
  const { unlock } = await lockDataFolder(folder)
  const failure = await lockDataFolder(folder).catch((error: unknown) => error)
  expect(failure).toMatchObject({ code: 'SLUICE_SERVICE_DATA_DIR_IN_USE' })
  expect(String(failure)).toContain(folder.path)
  expect(String(failure)).toContain(`process ${process.pid} on `)
  expect(String(failure)).toContain('SLUICE_DATA_DIR=')
  await unlock()
  await (await lockDataFolder(folder)).unlock()
})

it('is free again when its process was killed, whatever that left behind', async () => {
  const folder = await freshFolder()
  await (await lockDataFolder(folder)).unlock()
  const hold = `
    import { DatabaseSync } from 'node:sqlite'
    const lock = new DatabaseSync(${JSON.stringify(folder.lock)})
    lock.exec('BEGIN EXCLUSIVE')
    console.log('held')
    process.stdin.resume()`
  const child = spawn(process.execPath, ['--input-type=module', '-e', hold], { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(child, 'close')
  await once(child.stdout, 'data')
  await writeFile(folder.holder, 'process 12345 on elsewhere')
  const failure = await lockDataFolder(folder).catch((error: unknown) => error)
  expect(String(failure)).toContain('process 12345 on elsewhere')
  child.kill('SIGKILL')
  await ended
  await (await lockDataFolder(folder)).unlock()
})

it('goes again with the folders that were made for it, when it was not there before', async () => {
  const folder = await freshFolder()
  const root = dirname(dirname(folder.path))
  const first = await lockDataFolder(folder)
  await writeFile(folder.database, 'something')
  await first.unlock()
  await first.removeIfNew()
  expect(await readdir(root)).toEqual([])
  // Other files stay.
  const second = await lockDataFolder(folder)
  await writeFile(join(root, 'a', 'other'), 'theirs')
  await second.unlock()
  await second.removeIfNew()
  expect(await readdir(join(root, 'a'))).toEqual(['other'])
})

it('stays when it was there before', async () => {
  const folder = await freshFolder()
  await (await lockDataFolder(folder)).unlock()
  const later = await lockDataFolder(folder)
  await later.unlock()
  await later.removeIfNew()
  expect((await stat(folder.path)).isDirectory()).toBe(true)
})

it('that is not writable is an error with the reason', async () => {
  const folder = await freshFolder()
  await (await lockDataFolder(folder)).unlock()
  // A file stands where the folder should be.
  const failure = await lockDataFolder(dataFolder(folder.lock)).catch((error: unknown) => error)
  expect(failure).toMatchObject({ code: 'SLUICE_SERVICE_DATA_DIR_UNUSABLE', cause: { code: 'EEXIST' } })
  await writeFile(folder.lock, 'this is no database, and longer than a header of one must be'.repeat(10))
  const damaged = await lockDataFolder(folder).catch((error: unknown) => error)
  expect(damaged).toMatchObject({ code: 'SLUICE_SERVICE_DATA_DIR_UNUSABLE' })
})
