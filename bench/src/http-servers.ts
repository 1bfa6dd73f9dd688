import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { HEAP_LINE } from './heap-line.ts'

/** A server in a process of its own. */
export interface BenchServer {
  /** URL of checks, or of what stands for them. */
  readonly url: string
  /** Resident memory of its process, in bytes. */
  readonly residentBytes: () => Promise<number>
  /** What is in use of its heap after garbage has been collected, in bytes; only of the service. */
  readonly liveBytes: () => Promise<number>
  stop(): Promise<void>
}

/** A rule set that denies nothing: what is measured is the decision, not the denial. */
const GENEROUS = `rules:
  - { resource: '*', dimension: user, limit: 1000000000, window: 1m }
domains:
  - { domain: bench, descriptors: [{ key: user, limit: { unit: year, requestsPerUnit: 4000000000 } }] }
`

/** Starts the bare echo. */
export function startEcho(): Promise<BenchServer> {
  return startScript('http-echo-child.ts', [])
}

/** Starts a script of this folder that prints where it listens. */
export async function startScript(script: string, args: readonly string[]): Promise<BenchServer> {
  const file = fileURLToPath(new URL(`./${script}`, import.meta.url))
  const child = spawn(process.execPath, ['--conditions=source', file, ...args])
  return await serverOf(child, (line) => /^http:\S+/.exec(line)?.[0])
}

/** What a service is started with. */
export interface ServiceOptions {
  /** Default: counters are in memory. */
  readonly redisUrl?: string
  /** Default: off. */
  readonly respPort?: number
}

/** Starts the service with one thread and rules that deny no request. */
export function startService({ redisUrl, respPort }: ServiceOptions = {}): Promise<BenchServer> {
  const settings = {
    ...(redisUrl !== undefined && { REDIS_URL: redisUrl }),
    ...(respPort !== undefined && { SLUICE_RESP_PORT: String(respPort) }),
  }
  return startMain(settings, (line) => /http:\/\/\S+\/internal\/ratelimit\/check/.exec(line)?.[0])
}

/** The same with the gRPC listener, whose URL it has. `redisUrl`: where it counts. Default: in memory. */
export function startGrpcService(redisUrl?: string): Promise<BenchServer> {
  const store = redisUrl === undefined ? {} : { REDIS_URL: redisUrl }
  return startMain({ SLUICE_GRPC_PORT: '0', ...store }, (line) =>
    /grpc:(\/\/\S+)/.exec(line)?.[1]?.replace(/^/, 'http:'),
  )
}

async function startMain(
  more: Readonly<Record<string, string>>,
  urlIn: (line: string) => string | undefined,
): Promise<BenchServer> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const rules = join(folder, 'sluice.yaml')
  writeFileSync(rules, GENEROUS)
  const main = fileURLToPath(new URL('../../apps/service/src/main.ts', import.meta.url))
  const settings = { PORT: '0', SLUICE_DATA_DIR: folder, SLUICE_LOG_LEVEL: 'error', SLUICE_DRAIN_MS: '0' }
  const environment = { ...process.env, ...settings, ...more }
  const report = new URL('./heap-report.ts', import.meta.url).href
  const flags = ['--conditions=source', '--expose-gc', '--import', report]
  const child = spawn(process.execPath, [...flags, main, '--config', rules], { env: environment })
  const server = await serverOf(child, urlIn)
  return {
    ...server,
    async stop() {
      await server.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function serverOf(child: ChildProcess, urlIn: (line: string) => string | undefined): Promise<BenchServer> {
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const said: string[] = []
  let heapIs: (bytes: number) => void = () => undefined
  child.stderr?.on('data', (data: Buffer) => said.push(data.toString()))
  const url = await new Promise<string>((resolve, reject) => {
    const lines = createInterface({ input: child.stdout! })
    lines.on('line', (line) => {
      said.push(line)
      const heap = HEAP_LINE.exec(line)?.[1]
      if (heap !== undefined) heapIs(Number(heap))
      const found = urlIn(line)
      if (found !== undefined) resolve(found)
    })
    void ended.then(() => reject(new Error(`the server ended before it listened: ${said.join('\n')}`)))
  })
  return {
    url,
    residentBytes: async () => {
      const { stdout } = await promisify(execFile)('ps', ['-o', 'rss=', '-p', String(child.pid)])
      return Number(stdout) * 1024
    },
    liveBytes: () =>
      new Promise((resolve) => {
        heapIs = resolve
        child.kill('SIGUSR2')
      }),
    async stop() {
      child.kill('SIGTERM')
      await ended
    },
  }
}
