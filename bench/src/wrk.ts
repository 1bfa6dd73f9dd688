import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const CONNECTIONS = 64

/** A script of wrk that says what each request is, in a file of its own until it is disposed of. */
export class WrkScript {
  readonly #folder = mkdtempSync(join(tmpdir(), 'sluice-wrk-'))
  readonly #file = join(this.#folder, 'requests.lua')

  constructor(lua: string) {
    writeFileSync(this.#file, lua)
  }

  /** Requests a second that a server answers when it is asked as fast as it can, over 64 connections. All must be answered with 2xx. */
  async saturate(url: string, seconds: number): Promise<number> {
    const args = ['-t1', `-c${CONNECTIONS}`, `-d${seconds}s`, '-s', this.#file, url]
    const { stdout } = await promisify(execFile)('wrk', args).catch((error: unknown) => {
      throw new Error('this bench needs wrk: apt-get install wrk', { cause: error })
    })
    const bad = /Non-2xx or 3xx responses: (\d+)/.exec(stdout)
    if (bad !== null) throw new Error(`${bad[1]} requests were not answered with 200`)
    return Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1] ?? Number.NaN)
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
