import type { AddressInfo } from 'node:net'
import fastifyRateLimit from '@fastify/rate-limit'
import { rateLimit as sluiceExpress } from '@sluice/middleware/express'
import { rateLimit as sluiceFastify } from '@sluice/middleware/fastify'
import { type RedisStore, redisStore } from '@sluice/store-redis'
import express from 'express'
import expressRateLimit from 'express-rate-limit'
import fastify from 'fastify'
import { Redis } from 'ioredis'
import { RedisStore as PeerStore } from 'rate-limit-redis'
import { createClient } from 'redis'

// Serves `GET /` behind one rate limiter, in a process of its own, and prints its address. Started by the middleware
// bench.

/** High enough that nothing is denied. */
const LIMIT = 900_000_000
const WINDOW_MS = 60_000

const [candidate = '', redisUrl] = process.argv.slice(2)

/** Callers are distinguished by a header, as a gateway would pass the identity that it has verified. */
const USER = 'x-user'

async function peerClient(): Promise<{ sendCommand: (...args: string[]) => Promise<never> }> {
  const client = createClient({ url: redisUrl! })
  await client.connect()
  return { sendCommand: (...args) => client.sendCommand(args) as Promise<never> }
}

async function serveExpress(middleware: express.RequestHandler | undefined): Promise<number> {
  const app = express()
  if (middleware !== undefined) app.use(middleware)
  app.get('/', (_request, response) => {
    response.json({ hello: 'world' })
  })
  return await new Promise((resolve) => {
    const server = app.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
}

async function serveFastify(register: (app: fastify.FastifyInstance) => Promise<void>): Promise<number> {
  const app = fastify()
  await register(app)
  app.get('/', () => ({ hello: 'world' }))
  await app.listen({ port: 0, host: '127.0.0.1' })
  return (app.server.address() as AddressInfo).port
}

function ours(): { limit: number; window: number; store?: RedisStore } {
  const limit = { limit: LIMIT, window: WINDOW_MS }
  if (redisUrl === undefined) return limit
  const prefix = `bench-${process.pid}`
  return { ...limit, store: redisStore(redisUrl, { prefix, failureMode: 'closed', deadlineMs: 1000 }) }
}

const CANDIDATES: Readonly<Record<string, () => Promise<number>>> = {
  'express, no limit': () => serveExpress(undefined),
  'express, sluice': () => serveExpress(sluiceExpress({ ...ours(), key: (request) => request.get(USER) })),
  'express, express-rate-limit': async () =>
    serveExpress(
      expressRateLimit({
        limit: LIMIT,
        windowMs: WINDOW_MS,
        keyGenerator: (request) => request.get(USER) ?? '',
        ...(redisUrl === undefined ? {} : { store: new PeerStore(await peerClient()) }),
      }),
    ),
  'fastify, no limit': () => serveFastify(() => Promise.resolve()),
  'fastify, sluice': () =>
    serveFastify(async (app) => {
      await app.register(sluiceFastify, { ...ours(), key: (request) => String(request.headers[USER]) })
    }),
  'fastify, @fastify/rate-limit': () =>
    serveFastify(async (app) => {
      await app.register(fastifyRateLimit, {
        max: LIMIT,
        timeWindow: WINDOW_MS,
        keyGenerator: (request) => String(request.headers[USER]),
        ...(redisUrl === undefined ? {} : { redis: new Redis(redisUrl) }),
      })
    }),
}

console.log(`http://127.0.0.1:${await CANDIDATES[candidate]!()}/`)
process.on('SIGTERM', () => process.exit(0))
