import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CHECK_PATH } from '@sluice/contract'
import type { RedisServer } from '@sluice/testing/servers'
import { startRedis } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'

// Processes of the service that share limits and lose Redis: every thread is a node, and the shares of all nodes add
// up.

const LIMIT = 90

let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-shares-'))
  const rule = `{ resource: /x, dimension: user, algorithm: fixed-window, limit: ${LIMIT}, window: 52w }`
  writeFileSync(join(folder, 'sluice.yaml'), `rules:\n  - ${rule}\n`)
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The service in a process of its own. */
class ServiceProcess {
  readonly dataDir: string
  readonly #url: string
  readonly #threads: number
  #child: ChildProcess | undefined
  #origin = ''

  constructor(url: string, threads: number) {
    this.dataDir = mkdtempSync(join(folder, 'data-'))
    this.#url = url
    this.#threads = threads
  }

  async start(): Promise<void> {
    const env = {
      ...{ PORT: '0', SLUICE_DATA_DIR: this.dataDir, SLUICE_CONFIG: join(folder, 'sluice.yaml'), SLUICE_DRAIN_MS: '0' },
      ...{ REDIS_URL: this.#url, SLUICE_FAILURE_MODE: 'local', SLUICE_THREADS: String(this.#threads) },
      ...{ SLUICE_STORE_DEADLINE_MS: '200', SLUICE_LOG_LEVEL: 'error' },
    }
    const main = join(import.meta.dirname, '../main.ts')
    const child = spawn(process.execPath, ['--conditions=source', main], { env, stdio: ['ignore', 'pipe', 'inherit'] })
    this.#child = child
    this.#origin = await new Promise<string>((resolve, reject) => {
      let output = ''
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        output += text
        const [, found] = /(http:\/\/127\.0\.0\.1:\d+)\/readyz/.exec(output) ?? []
        if (found !== undefined) resolve(found)
      })
      child.on('close', () => reject(new Error(`It ended: ${output}`)))
    })
  }

  async kill(): Promise<void> {
    if (this.#child?.exitCode !== null) return
    const ended = once(this.#child, 'close')
    this.#child.kill('SIGKILL')
    await ended
  }

  /** Nodes that it knows of. */
  async nodes(): Promise<number> {
    const text = await (await fetch(`${this.#origin}/metrics`)).text()
    return Number(/^ratelimit_nodes (\d+)$/m.exec(text)?.[1])
  }

  /** Units that it admits to a user, on separate connections, until it has denied several in a row. */
  async drain(userId: string, denials: number): Promise<number> {
    let admitted = 0
    for (let denied = 0; denied < denials; ) {
      const headers = { 'Content-Type': 'application/json', Connection: 'close' }
      const body = JSON.stringify({ userId, resource: '/x' })
      const response = await fetch(this.#origin + CHECK_PATH, { method: 'POST', headers, body })
      await response.arrayBuffer()
      denied = response.status === 200 ? 0 : denied + 1
      if (response.status === 200) admitted++
    }
    return admitted
  }
}

async function startRedisServer(): Promise<RedisServer> {
  const redis = await startRedis()
  onTestFinished(() => redis.close())
  return redis
}

/**
 * Resolves when `count` nodes have each sent two heartbeats since all of them were there: the second one says that the
 * reply to the first was read.
 */
async function allCounted(redis: RedisServer, count: number): Promise<void> {
  const key = 'sluice:1:{nodes}'
  await expect.poll(() => redis.command('ZCARD', key), { timeout: 30_000 }).toBe(count)
  for (let heartbeat = 0; heartbeat < 2; heartbeat++) {
    const [seconds, micros] = (await redis.command('TIME')) as [string, string]
    const since = `(${Number(seconds) * 1_000_000 + Number(micros)}`
    await expect.poll(() => redis.command('ZCOUNT', key, since, '+inf'), { timeout: 30_000 }).toBe(count)
  }
}

async function startProcess(redis: RedisServer, threads: number): Promise<ServiceProcess> {
  const service = new ServiceProcess(redis.url, threads)
  onTestFinished(() => service.kill())
  await service.start()
  return service
}

describe('processes of the service that lose Redis', () => {
  it('have a share for each thread, also after a restart during the outage', async () => {
    const redis = await startRedisServer()
    const [single, double] = [await startProcess(redis, 1), await startProcess(redis, 2)]
    await allCounted(redis, 3)
    for (const service of [single, double]) expect(await service.nodes()).toBe(3)
    await expect.poll(() => readFileSync(join(single.dataDir, 'node-count'), 'utf8'), { timeout: 30_000 }).toBe('3\n')
    await redis.kill()
    expect(await single.drain('u1', 1)).toBe(LIMIT / 3)
    // Connections go to either thread: this many denials in a row come from both.
    expect(await double.drain('u1', 40)).toBe((2 * LIMIT) / 3)
    await single.kill()
    await single.start()
    expect(await single.nodes()).toBe(3)
    expect(await single.drain('u2', 1)).toBe(LIMIT / 3)
  }, 120_000)

  it('never know of fewer nodes than they have threads', async () => {
    const redis = await startRedisServer()
    await redis.kill()
    const service = await startProcess(redis, 2)
    expect(await service.nodes()).toBe(2)
    expect(await service.drain('u1', 40)).toBe(LIMIT)
  }, 120_000)

  it('deny a user that has used up the limit before', async () => {
    const redis = await startRedisServer()
    const service = await startProcess(redis, 1)
    await expect.poll(() => service.drain('warm-up', 1), { timeout: 30_000 }).toBe(0)
    expect(await service.drain('u1', 1)).toBe(LIMIT)
    await redis.kill()
    expect(await service.drain('u1', 10)).toBe(0)
    expect(await service.drain('u2', 1)).toBe(LIMIT)
  }, 120_000)
})
