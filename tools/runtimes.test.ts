// The portable part of the tests, on the other runtimes that the documents name: bundled, without vitest, with the
// HTTP server that the runtime has.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RedisServer, startRedis } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { call, ExampleProcess } from './examples-process.ts'
import type { PortableResult } from './runtimes/portable-vitest.ts'
import { addPackage, bundleTests, installRuntimes, outputOf, RUNTIMES } from './runtimes.test.support.ts'

const MIDDLEWARE = 'packages/middleware/src/adapters'
const TESTS = [
  ...['fetch', 'fetch-headers', 'fetch-response', 'fetch-server'].map((name) => `${MIDDLEWARE}/fetch/${name}.test.ts`),
  `${MIDDLEWARE}/hono/hono.test.ts`,
  'packages/core/src/algorithms/worked-examples.test.ts',
  'packages/core/src/limiter/acquire.test.ts',
  'packages/core/src/limiter/create-limiter.test.ts',
  'packages/core/src/policy/policy-engine.test.ts',
  'packages/core/src/store/memory/memory-store.test.ts',
]

/** A first installation downloads 150 MB, and a run takes ten seconds of a processor that others may use too. */
const LONGEST_MS = 300_000

let folder: string
/** What Node 22 says. vitest runs the same tests on the Node of this workspace. */
let expected: PortableResult

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-runtimes-'))
  const bundle = (kind: 'node' | 'native' | 'worker'): Promise<void> =>
    bundleTests(join(folder, `${kind}.mjs`), kind, TESTS)
  await Promise.all([installRuntimes(), bundle('node'), bundle('native'), bundle('worker'), addPackage(folder)])
  expected = JSON.parse(await outputOf(RUNTIMES['Node 22'], join(folder, 'node.mjs'))) as PortableResult
}, LONGEST_MS)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('the portable tests', { timeout: LONGEST_MS }, () => {
  it('pass on Node 22', () => {
    expect(expected).toEqual({ passed: expect.any(Number), skipped: 0, failed: [] })
    expect(expected.passed).toBeGreaterThan(1200)
  })

  it.each(['Bun', 'Deno'] as const)('all pass on %s too', async (name) => {
    expect(JSON.parse(await outputOf(RUNTIMES[name], join(folder, 'native.mjs')))).toEqual(expected)
  })

  it('pass on Cloudflare Workers, except those that open a server', async () => {
    const config = `using Workerd = import "/workerd/workerd.capnp";
      const config :Workerd.Config = (
        services = [(name = "main", worker = (
          modules = [(name = "worker.mjs", esModule = embed "worker.mjs")],
          compatibilityDate = "2026-10-01",
        ))],
        sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
      );`
    writeFileSync(join(folder, 'config.capnp'), config)
    const { default: command } = createRequire(import.meta.url)('workerd') as { readonly default: string }
    const workerd = new ExampleProcess({ command, args: ['serve', 'config.capnp', '--control-fd=1'], cwd: folder })
    try {
      const port = await workerd.printed(/"event":"listen","socket":"http","port":(\d+)/)
      const { body } = await call(`http://127.0.0.1:${port}/`)
      const { passed, skipped, failed } = JSON.parse(body) as PortableResult
      expect(failed).toEqual([])
      expect(passed + skipped).toBe(expected.passed)
      // All of the middleware suites, which are sent real requests; the rest calls handlers itself.
      expect(passed).toBeGreaterThan(1000)
    } finally {
      await workerd.stop('SIGKILL')
    }
  })
})

describe('sluice/redis by URL', () => {
  const PROGRAM = `
    import { createLimiter } from 'sluice'
    import { redisStore } from 'sluice/redis'

    const url = process.env.REDIS_URL
    const limiters = ['one', 'two'].map(() => {
      const store = redisStore(url, { deadlineMs: 20_000, prefix: process.env.PREFIX })
      return { store, limiter: createLimiter({ algorithm: 'fixed-window', limit: 100, window: '1h', store }) }
    })
    const ready = await Promise.all(limiters.map(({ store }) => store.ready(20_000)))
    const keys = Array.from({ length: 300 }, (_, call) => 'key-' + (call % 2))
    const decisions = await Promise.all(keys.map((key, call) => limiters[call % 3 === 0 ? 0 : 1].limiter.check(key)))
    const count = (of) => decisions.filter(of).length
    const reservation = await limiters[0].limiter.reserve('other', { cost: 40 })
    await reservation.release()
    const { remaining } = await limiters[1].limiter.peek('other')
    await Promise.all(limiters.map(({ store }) => store.close()))
    const failures = count(({ failure }) => failure !== undefined)
    console.log(JSON.stringify({ ready, allowed: count(({ allowed }) => allowed), failures, remaining }))
  `
  let redis: RedisServer

  beforeAll(async () => {
    redis = await startRedis()
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
    writeFileSync(join(folder, 'redis.mjs'), PROGRAM)
  })

  afterAll(() => redis.close())

  it.each(Object.entries(RUNTIMES))('counts exactly over two connections, on %s', async (name, runtime) => {
    const env = { REDIS_URL: redis.url, PREFIX: name.replace(' ', '') }
    expect(JSON.parse(await outputOf(runtime, join(folder, 'redis.mjs'), env))).toEqual({
      ready: [true, true],
      allowed: 200,
      failures: 0,
      remaining: 100,
    })
  })
})
