import express from 'express'
import { createClient } from 'sluice/client'
import { rateLimit } from 'sluice/express'

const urls = process.env.SLUICE_URLS ?? 'http://127.0.0.1:8080,http://127.0.0.1:8081'
const clients = urls.split(',').map((url) => createClient({ url, timeoutMs: 1000, failureMode: 'open' }))
let asked = 0

const app = express()

app.use(
  rateLimit({
    // In turn, as a load balancer in front of the service would.
    check: ({ identity, cost, context: request }) =>
      clients[asked++ % clients.length].check({
        clientIp: identity.value,
        resource: request.path,
        method: request.method,
        tokens: cost,
      }),
  }),
)
app.get('/', (_request, response) => response.type('text').send('hello\n'))

const server = app.listen(process.env.PORT ?? 3000, '127.0.0.1', (error) => {
  if (error) throw error
  console.log(`http://127.0.0.1:${server.address().port}/`)
})
process.once('SIGTERM', () => server.close())
