import { serve } from '@hono/node-server'
import { rateLimit } from 'sluice/fetch'

const limited = rateLimit({ limit: 5, window: '1m' })

const handler = limited(() => new Response('hello\n'))

const server = serve({ fetch: handler, port: process.env.PORT ?? 3000, hostname: '127.0.0.1' }, ({ port }) =>
  console.log(`http://127.0.0.1:${port}/`),
)
process.once('SIGTERM', () => server.close())
