import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

/** Runs a script of this folder in a process of its own, with `input` to read, and returns the JSON it prints. */
export async function runChild<T>(script: string, args: readonly string[], input = ''): Promise<T> {
  const file = fileURLToPath(new URL(`./${script}`, import.meta.url))
  const flags = ['--expose-gc', '--conditions=source', '--max-old-space-size=4096']
  const child = spawn(process.execPath, [...flags, file, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.end(input)
  const [printed, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  if (code !== 0) throw new Error(`${script} ended with code ${code}`)
  return JSON.parse(printed) as T
}
