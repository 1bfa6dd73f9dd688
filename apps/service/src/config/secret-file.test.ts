import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { readSecret, SECRET_BYTES, writeSecret } from './signing-secret.ts'

async function freshPath(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-secret-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return join(folder, 'a', 'secret')
}

const SECRET = Uint8Array.from({ length: SECRET_BYTES }, (_, index) => index * 7)

it('is read as it was written, and only this user can read it', async () => {
  const path = await freshPath()
  expect(await readSecret(path)).toBeUndefined()
  await writeSecret(path, SECRET)
  expect(await readSecret(path)).toEqual(SECRET)
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  await writeSecret(path, SECRET.toReversed())
  expect(await readSecret(path)).toEqual(SECRET.toReversed())
  expect(await readdir(join(path, '..'))).toEqual(['secret'])
})

it.each(['', 'zz', 'ab'.repeat(31), 'ab'.repeat(33)])('is none when the file says %j', async (text) => {
  const path = await freshPath()
  await writeSecret(path, SECRET)
  await writeFile(path, text)
  expect(await readSecret(path)).toBeUndefined()
})

it('that cannot be read is an error, and not another secret', async () => {
  const path = await freshPath()
  await writeSecret(path, SECRET)
  await expect(readSecret(join(path, '..'))).rejects.toThrow('EISDIR')
})
