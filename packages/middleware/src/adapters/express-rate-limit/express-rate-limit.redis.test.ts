import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { type RedisStore, type RedisStoreOptions, redisStore } from '@sluice/store-redis'
import { type RedisServer, startRedis } from '@sluice/testing/servers'
import express from 'express'
import { type ClientRateLimitInfo, type Options, rateLimit } from 'express-rate-limit'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { sluiceStore } from './express-rate-limit.ts'

const CHILD = fileURLToPath(new URL('./express-rate-limit.test.child.ts', import.meta.url))
/** Longer than the test: all hits are in one window. */
const CENTURY_MS = 100 * 365 * 86_400_000
const PATIENT: RedisStoreOptions = { deadlineMs: 20_000 }

let redis: RedisServer

beforeAll(async () => {
  redis = await startRedis()
})

afterAll(async () => {
  await redis.close()
})

async function openStore(url: string, options: RedisStoreOptions): Promise<RedisStore> {
  const store = redisStore(url, options)
  onTestFinished(() => store.close())
  await store.ready()
  return store
}

/** The port of a process that serves a site behind express-rate-limit. */
async function startProcess(limit: number): Promise<number> {
  const child = fork(CHILD, [redis.url, String(limit)], { execArgv: ['--conditions=source', '--no-warnings'] })
  const ended = once(child, 'exit')
  onTestFinished(async () => {
    if (child.exitCode === null && child.connected) child.send('end')
    await ended
  })
  const [port] = await Promise.race([
    once(child, 'message'),
    ended.then(([code]) => Promise.reject(new Error(`the process ended with ${code}`))),
  ])
  return port
}

/** Statuses of requests to a site behind express-rate-limit, one after another. */
async function statusesOf(options: Partial<Options>, paths: readonly string[]): Promise<number[]> {
  const app = express()
  app.use(rateLimit({ logger: { error: () => undefined, warn: () => undefined }, ...options }))
  app.use((request, response) => void response.status(request.path === '/bad' ? 500 : 200).end())
  app.use(((_error, _request, response, _next) => {
    response.status(500).end()
  }) satisfies express.ErrorRequestHandler)
  const server = await new Promise<Server>((resolve) => {
    const listening: Server = app.listen(0, '127.0.0.1', () => resolve(listening))
  })
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const { port } = server.address() as AddressInfo
  const statuses: number[] = []
  for (const path of paths) {
    statuses.push((await fetch(`http://127.0.0.1:${port}${path}`, { headers: { connection: 'close' } })).status)
  }
  return statuses
}

describe('express-rate-limit on Redis', () => {
  it('counts every hit of eight processes once, and lets the limit through', async () => {
    const [limit, each] = [100, 50]
    const ports = await Promise.all(Array.from({ length: 8 }, () => startProcess(limit)))
    const answers = await Promise.all(
      ports.flatMap((port) =>
        Array.from({ length: each }, async () => {
          const response = await fetch(`http://127.0.0.1:${port}/`)
          return { status: response.status, ...((await response.json()) as { used: number }) }
        }),
      ),
    )
    const used = answers.map((answer) => answer.used).toSorted((one, other) => one - other)
    expect(used).toEqual(Array.from({ length: 8 * each }, (_, index) => index + 1))
    const admitted = answers.filter(({ status }) => status === 200)
    expect(admitted.map((answer) => answer.used).toSorted((one, other) => one - other)).toEqual(used.slice(0, limit))
  })

  it('gives hits back, never below 0, and leaves no key that stays', async () => {
    const store = await openStore(redis.url, { ...PATIENT, prefix: 'back' })
    const hits = sluiceStore({ store, prefix: 'back' })
    const options = { windowMs: CENTURY_MS, limit: 2, skipFailedRequests: true, store: hits }
    const statuses = await statusesOf(options, ['/bad', '/bad', '/bad', '/', '/', '/', '/'])
    expect(statuses).toEqual([500, 500, 500, 200, 200, 429, 429])
    await vi.waitFor(async () => expect(await hits.get('127.0.0.1')).toMatchObject({ totalHits: 2 }))
    for (let time = 0; time < 5; time++) await hits.decrement('127.0.0.1')
    expect(await hits.get('127.0.0.1')).toMatchObject({ totalHits: 0 })
    await hits.decrement('somebody new')
    expect(await hits.increment('somebody new')).toMatchObject({ totalHits: 1 })
    const keys = (await redis.command('KEYS', 'back:*')) as string[]
    const lives = await Promise.all(keys.map((key) => redis.command('PTTL', key)))
    expect(lives.every((ms) => Number(ms) > 0 && Number(ms) <= 2 * CENTURY_MS)).toBe(true)
    await hits.resetKey('somebody new')
    expect(await hits.get('somebody new')).toBeUndefined()
  })

  it('counts exactly on a store that has leases', async () => {
    const options = { ...PATIENT, prefix: 'leased', leases: true }
    const stores = [await openStore(redis.url, options), await openStore(redis.url, options)]
    const counters = stores.map((store) => sluiceStore({ store }))
    for (const counter of counters) counter.init({ windowMs: CENTURY_MS })
    const seen: number[] = []
    for (let turn = 0; turn < 20; turn++) {
      const answers = await Promise.all(
        counters.flatMap(
          (counter) => [counter.increment('a'), counter.increment('a')] as Promise<ClientRateLimitInfo>[],
        ),
      )
      seen.push(...answers.map(({ totalHits }) => totalHits))
    }
    expect(seen.toSorted((one, other) => one - other)).toEqual(Array.from({ length: 80 }, (_, index) => index + 1))
  })

  it.each([
    [false, 500],
    [true, 200],
  ])('with passOnStoreError %s answers %i while Redis is unavailable', async (passOnStoreError, status) => {
    // Nothing listens there, and the store itself would allow everything.
    const store = redisStore('redis://127.0.0.1:1', { failureMode: 'open' })
    onTestFinished(() => store.close())
    expect(await statusesOf({ passOnStoreError, limit: 1, store: sluiceStore({ store }) }, ['/', '/'])).toEqual([
      status,
      status,
    ])
  })
})
