import express from 'express'
import { rateLimit } from 'express-rate-limit'
import { sluiceStore } from 'sluice/express-rate-limit'

const DAY_MS = 24 * 60 * 60 * 1000

const app = express()

app.use(rateLimit({ limit: 5, windowMs: DAY_MS, store: sluiceStore() }))
app.get('/', (_request, response) => response.type('text').send('hello\n'))

const server = app.listen(process.env.PORT ?? 3000, '127.0.0.1', (error) => {
  if (error) throw error
  console.log(`http://127.0.0.1:${server.address().port}/`)
})
process.once('SIGTERM', () => server.close())
