import { createServer } from 'node:http'
import { createLimiter } from 'sluice'

const limiter = createLimiter({ limit: 5, window: '1m' })

const server = createServer((request, response) => {
  const decision = limiter.check(request.socket.remoteAddress)
  if (decision.allowed) {
    response.end('hello\n')
    return
  }
  const seconds = Math.ceil(decision.retryAfterMs / 1000)
  response.writeHead(429, { 'Retry-After': seconds, 'Content-Type': 'application/problem+json' })
  response.end(JSON.stringify({ title: 'Too many requests', status: 429, detail: `Try again in ${seconds} seconds.` }))
})

server.listen(process.env.PORT ?? 3000, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/`))
process.once('SIGTERM', () => server.close())
