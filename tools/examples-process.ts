import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:http'
import type { HttpAnswer } from './examples.ts'
import { ToolError } from './tool-error.ts'

/** How a process is started. */
export interface ProcessOptions {
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
}

/** How a process ended, and what it printed. */
export interface ProcessEnd {
  readonly code: number | null
  readonly output: string
  readonly complaints: string
}

/** A program that was started for a test. */
export class ExampleProcess {
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>
  #output = ''
  #complaints = ''

  constructor({ command, args, cwd, env = {} }: ProcessOptions) {
    const path = process.env['PATH'] ?? ''
    this.#child = spawn(command, args, { cwd, env: { PATH: path, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
    this.#child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      this.#output += text
    })
    this.#child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.#complaints += text
    })
    this.#ended = once(this.#child, 'close')
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null
  }

  /**
   * Waits until it has printed what matches, and gives the first group of it.
   *
   * @throws ToolError `EXAMPLE_FAILED` with all it has printed, when it ends before
   */
  async printed(pattern: RegExp): Promise<string> {
    const closed = this.#ended.then(() => 'closed')
    for (;;) {
      const found = pattern.exec(this.#output)?.[1]
      if (found !== undefined) return found
      if ((await Promise.race([once(this.#child.stdout!, 'data'), closed])) === 'closed') {
        const args = this.#child.spawnargs.join(' ')
        throw new ToolError('EXAMPLE_FAILED', `${args} has ended too early: ${this.#output}${this.#complaints}`)
      }
    }
  }

  /** Waits for its end. */
  async end(): Promise<ProcessEnd> {
    await this.#ended
    return { code: this.#child.exitCode, output: this.#output, complaints: this.#complaints }
  }

  /** Asks it to end, or ends it, and waits for that. */
  stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<ProcessEnd> {
    this.#child.kill(signal)
    return this.end()
  }
}

/** What a call is made with. */
export interface CallOptions {
  readonly headers?: Readonly<Record<string, string>>
  /** The address to call from. Default: that of the machine. */
  readonly localAddress?: string
}

/** Makes a GET request on a connection of its own. */
export function call(url: string, options: CallOptions = {}): Promise<HttpAnswer> {
  return new Promise((answered, failed) => {
    request(url, { agent: false, ...options }, async (response) => {
      const headers = Object.entries(response.headersDistinct).map(([name, values = []]) => [name, values.join(', ')])
      const pieces = await response.setEncoding('utf8').toArray()
      answered({
        status: `${response.statusCode} ${response.statusMessage}`,
        headers: Object.fromEntries(headers),
        body: pieces.join(''),
      })
    })
      .once('error', failed)
      .end()
  })
}
