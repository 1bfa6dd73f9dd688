// A process of its own: an Express site behind express-rate-limit, whose hits are counted in Redis. Tells its parent
// where it listens, and ends when the parent says anything.
import type { AddressInfo } from 'node:net'
import { redisStore } from '@sluice/store-redis'
import express from 'express'
import { type AugmentedRequest, rateLimit } from 'express-rate-limit'
import { sluiceStore } from './express-rate-limit.ts'

const [url = '', limit = ''] = process.argv.slice(2)

const store = redisStore(url, { deadlineMs: 20_000 })
const app = express()
app.use((_request, response, next) => {
  response.set('connection', 'close')
  next()
})
app.use(
  rateLimit({
    // Longer than the test: all hits are in one window.
    windowMs: 100 * 365 * 86_400_000,
    limit: Number(limit),
    store: sluiceStore({ store }),
    handler: (request, response) => void response.status(429).json((request as AugmentedRequest)['rateLimit']),
  }),
)
app.use((request, response) => void response.json((request as AugmentedRequest)['rateLimit']))

await store.ready(20_000)
const server = app.listen(0, '127.0.0.1', () => {
  process.send?.((server.address() as AddressInfo).port)
})

process.once('message', async () => {
  await new Promise((resolve) => server.close(resolve))
  await store.close()
  process.disconnect()
})
