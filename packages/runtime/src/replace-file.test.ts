import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { replaceFile } from './replace-file.ts'

let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-replace-'))
})

afterEach(() => rm(folder, { recursive: true, force: true }))

describe('replaceFile', () => {
  it('writes a file that only its owner may read, in a folder that it makes', async () => {
    const path = join(folder, 'a/b/file')
    await replaceFile(path, 'text')
    expect(await readFile(path, 'utf8')).toBe('text')
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect((await stat(join(folder, 'a/b'))).mode & 0o777).toBe(0o700)
  })

  it('replaces a file by another one and leaves no other file behind', async () => {
    const path = join(folder, 'file')
    await replaceFile(path, 'first')
    const before = await stat(path)
    await writeFile(`${path}.new`, 'left by a process that died, and longer than what follows')
    await replaceFile(path, 'second')
    expect(await readFile(path, 'utf8')).toBe('second')
    expect((await stat(path)).ino).not.toBe(before.ino)
    expect(await readdir(folder)).toEqual(['file'])
  })

  it('rejects and leaves the file as it was when it cannot be written', async () => {
    const path = join(folder, 'file')
    await replaceFile(path, 'first')
    await expect(replaceFile(join(path, 'inside'), 'second')).rejects.toMatchObject({ code: 'EEXIST' })
    expect(await readFile(path, 'utf8')).toBe('first')
  })
})
