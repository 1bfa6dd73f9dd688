import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { rateLimit } from 'sluice/hono'

const app = new Hono()

app.use(rateLimit({ limit: 5, window: '1m' }))
app.get('/', (c) => c.text('hello\n'))

const server = serve({ fetch: app.fetch, port: process.env.PORT ?? 3000, hostname: '127.0.0.1' }, ({ port }) =>
  console.log(`http://127.0.0.1:${port}/`),
)
process.once('SIGTERM', () => server.close())
