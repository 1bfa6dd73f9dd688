import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const CONNECTIONS = 64

const MILLISECONDS: Readonly<Record<string, number>> = { us: 0.001, ms: 1, s: 1000 }

/** Load on a server: the number of connections, each without a pause. */
export interface Pressure {
  readonly url: string
  readonly seconds: number
  readonly connections: number
}

/** How a server answered. */
export interface Pressed {
  /** Answers a second with 2xx. */
  readonly goodPerSecond: number
  /** Answers with anything else. */
  readonly refused: number
  readonly p50Ms: number
  readonly p99Ms: number
}

/** A script of wrk that says what each request is, in a file of its own until it is disposed of. */
export class WrkScript {
  readonly #folder = mkdtempSync(join(tmpdir(), 'sluice-wrk-'))
  readonly #file = join(this.#folder, 'requests.lua')

  constructor(lua: string) {
    writeFileSync(this.#file, lua)
  }

  /**
   * Requests a second that a server answers when it is called as fast as it can, over 64 connections. All must be
   * answered with 2xx.
   */
  async saturate(url: string, seconds: number): Promise<number> {
    const { goodPerSecond, refused } = await this.press({ url, seconds, connections: CONNECTIONS })
    if (refused > 0) throw new Error(`${refused} requests were not answered with 200`)
    return goodPerSecond
  }

  /** The same over a number of connections, with any answers. */
  async press({ url, seconds, connections }: Pressure): Promise<Pressed> {
    const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency', '-s', this.#file, url]
    const { stdout } = await promisify(execFile)('wrk', args).catch((error: unknown) => {
      throw new Error('this bench needs wrk: apt-get install wrk', { cause: error })
    })
    const refused = Number(/Non-2xx or 3xx responses: (\d+)/.exec(stdout)?.[1] ?? 0)
    const perSecond = Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1] ?? Number.NaN)
    const percentile = (rank: number): number => {
      const [, value = '', unit = ''] = new RegExp(`${rank}%\\s+([\\d.]+)(us|ms|s)`).exec(stdout) ?? []
      return Number(value) * MILLISECONDS[unit]!
    }
    return {
      goodPerSecond: perSecond - refused / seconds,
      refused,
      p50Ms: percentile(50),
      p99Ms: percentile(99),
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
