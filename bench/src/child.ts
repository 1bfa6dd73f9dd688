import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/** Runs a script of this folder in a process of its own and returns the JSON it prints. */
export async function runChild<T>(script: string, args: readonly string[]): Promise<T> {
  const file = fileURLToPath(new URL(`./${script}`, import.meta.url))
  const flags = ['--expose-gc', '--conditions=source', '--max-old-space-size=4096']
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, file, ...args])
  return JSON.parse(stdout) as T
}
