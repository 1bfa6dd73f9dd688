import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const CONNECTIONS = 4
const STREAMS = 16

const PATH = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'

/** How a gRPC server answered. */
export interface Loaded {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
}

/** Calls with one message, by h2load, in files of its own until it is disposed of. */
export class H2Load {
  readonly #folder = mkdtempSync(join(tmpdir(), 'sluice-h2load-'))
  readonly #body = join(this.#folder, 'body')
  readonly #log = join(this.#folder, 'log')

  /** `message`: a protobuf message. */
  constructor(message: Buffer) {
    const prefix = Buffer.alloc(5)
    prefix.writeUInt32BE(message.length, 1)
    writeFileSync(this.#body, Buffer.concat([prefix, message]))
  }

  /**
   * Calls a server over 4 connections with 16 calls in flight on each: as fast as it can, or `perSecond`. All must be
   * answered with 200.
   */
  async run(url: string, seconds: number, perSecond?: number): Promise<Loaded> {
    const rate = perSecond === undefined ? [] : [`--rps=${Math.max(1, Math.round(perSecond / CONNECTIONS))}`]
    const load = ['-t1', `-c${CONNECTIONS}`, `-m${STREAMS}`, `-D${seconds}`, `--log-file=${this.#log}`, ...rate]
    const headers = ['-H', 'content-type: application/grpc', '-H', 'te: trailers']
    writeFileSync(this.#log, '')
    const args = [...load, ...headers, '-d', this.#body, `${url}${PATH}`]
    const { stdout } = await promisify(execFile)('h2load', args).catch((error: unknown) => {
      throw new Error('this bench needs h2load: apt-get install nghttp2-client', { cause: error })
    })
    const failed = /(\d+) failed, (\d+) errored/.exec(stdout)
    if (failed === null || Number(failed[1]) > 0 || Number(failed[2]) > 0)
      throw new Error(`not all calls were answered with 200:\n${stdout}`)
    // Start, status and duration in microseconds of every call.
    const micros = readFileSync(this.#log, 'utf8')
      .trim()
      .split('\n')
      .map((line) => Number(line.split('\t')[2]))
      .sort((one, other) => one - other)
    const percentile = (share: number): number => micros[Math.floor(micros.length * share)]! / 1000
    const reached = Number(/finished in [\d.]+\w+, ([\d.]+) req\/s/.exec(stdout)?.[1] ?? Number.NaN)
    return { perSecond: reached, p50Ms: percentile(0.5), p99Ms: percentile(0.99) }
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
