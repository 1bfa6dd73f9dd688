import { once } from 'node:events'
import { serve } from '@hono/node-server'
import { rateLimit } from 'sluice/fetch'

/** Somebody else's API: three calls in any two seconds, for each path by itself. */
export async function startApi(port) {
  const limited = rateLimit({
    algorithm: 'sliding-window-log',
    limit: 3,
    window: '2s',
    key: ({ request }) => new URL(request.url).pathname,
  })
  const server = serve({ fetch: limited(() => new Response('here you are\n')), port, hostname: '127.0.0.1' })
  await once(server, 'listening')
  return server
}
