import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Length of a secret in bytes: as much as HMAC-SHA-256 makes use of. */
export const SECRET_BYTES = 32

/** The secret in a file; undefined when there is none, or what is there is none. */
export async function readSecret(path: string): Promise<Uint8Array | undefined> {
  try {
    const bytes = Buffer.from((await readFile(path, 'utf8')).trim(), 'hex')
    return bytes.length === SECRET_BYTES ? new Uint8Array(bytes) : undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Keeps a secret in a file that only this user can read. The file is whole at any moment. */
export async function writeSecret(path: string, secret: Uint8Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const next = `${path}.new`
  await writeFile(next, `${Buffer.from(secret).toString('hex')}\n`, { mode: 0o600 })
  await rename(next, path)
}
