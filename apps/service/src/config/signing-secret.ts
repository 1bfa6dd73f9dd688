import { readFile } from 'node:fs/promises'
import type { ConfigStore } from '@sluice/config-store'
import { replaceFile } from '@sluice/runtime'

/**
 * Signs what clients send back unchanged. It is kept in the configuration database, so that all nodes have the same
 * one; a copy in the data folder is used while the database is unreachable.
 */
export class SigningSecret {
  /** Shared by the threads of the process. */
  readonly memory: SharedArrayBuffer
  /** Changes in place. */
  readonly bytes: Uint8Array
  readonly #path: string | undefined

  /** `path`: of the copy; undefined if the database is in the data folder itself. */
  constructor(path: string | undefined) {
    this.#path = path
    this.memory = new SharedArrayBuffer(SECRET_BYTES)
    this.bytes = new Uint8Array(this.memory)
  }

  /** Uses the copy; without one `makeshift`, until the database is reachable. */
  async start(makeshift: Uint8Array): Promise<void> {
    const copy = this.#path === undefined ? undefined : await readSecret(this.#path)
    this.bytes.set(copy ?? makeshift)
  }

  /** Uses the secret of the database. */
  async learn(config: ConfigStore): Promise<void> {
    const secret = await config.secrets.get('signing')
    this.bytes.set(secret)
    if (this.#path !== undefined) await writeSecret(this.#path, secret)
  }
}

/** Length of a secret in bytes: the output size of HMAC-SHA-256. */
export const SECRET_BYTES = 32

/** The secret in a file; undefined if there is none or it is invalid. */
export async function readSecret(path: string): Promise<Uint8Array | undefined> {
  try {
    const bytes = Buffer.from((await readFile(path, 'utf8')).trim(), 'hex')
    return bytes.length === SECRET_BYTES ? new Uint8Array(bytes) : undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Keeps a secret in a file that only this user can read. The file is complete at any time. */
export async function writeSecret(path: string, secret: Uint8Array): Promise<void> {
  await replaceFile(path, `${Buffer.from(secret).toString('hex')}\n`)
}
