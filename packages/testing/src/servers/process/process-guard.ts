import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import type { Writable } from 'node:stream'

// Reads process ids, of which the last one counts (an empty line: none), until its input ends: at dismissal, or when
// the process at the other end dies in any way.
const SCRIPT = `
pid=
while read -r line; do pid=$line; done
if [ -n "$pid" ]; then kill -9 "$pid"; fi
rm -rf "$1"
`

/**
 * Makes sure that a server and its folder do not outlive the process that started it: a small shell in its own process
 * group, which kills the server and removes the folder when that process is gone.
 */
export class ProcessGuard {
  readonly #shell: ChildProcess
  readonly #input: Writable
  readonly #ended: Promise<void>

  /** @param folder - removed with its content at the end */
  constructor(folder: string) {
    this.#shell = spawn('/bin/sh', ['-c', SCRIPT, 'sh', folder], {
      stdio: ['pipe', 'ignore', 'ignore'],
      // In a separate session: Ctrl-C ends the tests, and must not end the cleanup.
      detached: true,
    })
    this.#input = this.#shell.stdin!
    this.#ended = new Promise((resolve, reject) => {
      this.#shell.once('exit', () => resolve())
      this.#shell.once('error', reject)
    })
    // Writing to a shell that is gone fails; only its folder would be left behind.
    this.#input.on('error', () => this.#input.destroy())
  }

  /** The process to end, from now on; undefined for none. */
  watch(pid: number | undefined): void {
    if (this.#input.writable) this.#input.write(`${pid ?? ''}\n`)
  }

  /** Kills the watched process, if any, and removes the folder. May be called more than once. */
  dismiss(): Promise<void> {
    this.#input.end()
    return this.#ended
  }
}
