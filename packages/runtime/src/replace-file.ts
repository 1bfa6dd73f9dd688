import { mkdir, open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Replaces a file by a new one that only its owner may read; makes its folder if there is none. The file is complete at
 * any time, even if the process or the machine dies: the text is written to `<path>.new`, synced, and renamed.
 *
 * Resolves once the file would survive a power loss. The caller must not write one file twice at the same time.
 */
export async function replaceFile(path: string, text: string): Promise<void> {
  const folder = dirname(path)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const next = `${path}.new`
  const handle = await open(next, 'w', 0o600)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await rename(next, path)
  await syncFolder(folder)
}

/**
 * A rename is durable once its folder is synced. Where folders cannot be opened (Windows), the operating system does
 * it.
 */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => undefined)
  try {
    await handle?.sync()
  } finally {
    await handle?.close()
  }
}
