import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import type { Writable } from 'node:stream'

// Reads process ids, the last of which counts (an empty line: none), until its input ends. That happens at dismissal,
// and by itself when the process that holds the other end dies, however it dies.
const SCRIPT = `
pid=
while read -r line; do pid=$line; done
if [ -n "$pid" ]; then kill -9 "$pid"; fi
rm -rf "$1"
`

/**
 * Sees to it that a server and its folder do not outlive the process that started it: a small shell outside of the
 * process's group, which ends the server and removes the folder when the process is gone.
 */
export class ProcessGuard {
  readonly #shell: ChildProcess
  readonly #input: Writable
  readonly #ended: Promise<void>

  /** @param folder - removed with all it holds at the end */
  constructor(folder: string) {
    this.#shell = spawn('/bin/sh', ['-c', SCRIPT, 'sh', folder], {
      stdio: ['pipe', 'ignore', 'ignore'],
      // In a session of its own: Ctrl-C ends the tests, and must not end what cleans up after them.
      detached: true,
    })
    this.#input = this.#shell.stdin!
    this.#ended = new Promise((resolve, reject) => {
      this.#shell.once('exit', () => resolve())
      this.#shell.once('error', reject)
    })
    // Writing to a shell that is gone fails; the folder it leaves is all there is to lose.
    this.#input.on('error', () => this.#input.destroy())
  }

  /** The process to end, from now on; undefined for none. */
  watch(pid: number | undefined): void {
    if (this.#input.writable) this.#input.write(`${pid ?? ''}\n`)
  }

  /** Ends the process watched, if any, and removes the folder. May be called more than once. */
  dismiss(): Promise<void> {
    this.#input.end()
    return this.#ended
  }
}
