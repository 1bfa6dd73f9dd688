import express from 'express'
import { rateLimit } from 'sluice/express'

const app = express()

app.use(rateLimit({ limit: 5, window: '1m' }))
app.get('/', (_request, response) => response.type('text').send('hello\n'))

const server = app.listen(process.env.PORT ?? 3000, '127.0.0.1', (error) => {
  if (error) throw error
  console.log(`http://127.0.0.1:${server.address().port}/`)
})
process.once('SIGTERM', () => server.close())
