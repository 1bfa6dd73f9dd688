import express from 'express'
import { rateLimit } from 'sluice/express'
import { redisStore } from 'sluice/redis'

// A request waits for Redis no longer than the deadline; what then happens is the failure mode's to say.
const store = redisStore(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379', { deadlineMs: 500, failureMode: 'open' })
await store.ready()

const app = express()

app.use(rateLimit({ limit: 5, window: '1m', store }))
app.get('/', (_request, response) => response.type('text').send('hello\n'))

const server = app.listen(process.env.PORT ?? 3000, '127.0.0.1', (error) => {
  if (error) throw error
  console.log(`http://127.0.0.1:${server.address().port}/`)
})
process.once('SIGTERM', () => server.close(() => store.close()))
