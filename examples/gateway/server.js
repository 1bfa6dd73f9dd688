import { createServer } from 'node:http'

// An app without limits, keys or TLS. The gateway in front of it has verified who calls.
const server = createServer((request, response) => {
  if (request.url === '/health') response.end('well\n')
  else response.end(`hello ${request.headers['x-user-id']}\n`)
})

server.listen(process.env.PORT ?? 3000, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/`)
})
process.once('SIGTERM', () => {
  server.close()
  server.closeIdleConnections()
})
