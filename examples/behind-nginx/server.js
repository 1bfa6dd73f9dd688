import express from 'express'
import { rateLimit } from 'sluice/express'

const app = express()

// One proxy, nginx, stands in front of this app: the address that it has written is that of the client.
app.use(rateLimit({ limit: 5, window: '1m', trustProxy: 1 }))
app.get('/', (_request, response) => response.type('text').send('hello\n'))

const server = app.listen(process.env.PORT ?? 3000, '127.0.0.1', (error) => {
  if (error) throw error
  console.log(`http://127.0.0.1:${server.address().port}/`)
})
process.once('SIGTERM', () => server.close())
