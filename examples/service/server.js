import express from 'express'
import { createClient } from 'sluice/client'
import { rateLimit } from 'sluice/express'

const client = createClient({
  url: process.env.SLUICE_URL ?? 'http://127.0.0.1:8080',
  timeoutMs: 1000,
  // What a request gets while the service cannot be asked.
  failureMode: 'open',
})

const app = express()

app.use(
  rateLimit({
    check: ({ identity, cost, context: request }) =>
      client.check({ clientIp: identity.value, resource: request.path, method: request.method, tokens: cost }),
  }),
)
app.get('/', (_request, response) => response.type('text').send('hello\n'))

const server = app.listen(process.env.PORT ?? 3000, '127.0.0.1', (error) => {
  if (error) throw error
  console.log(`http://127.0.0.1:${server.address().port}/`)
})
process.once('SIGTERM', () => server.close())
