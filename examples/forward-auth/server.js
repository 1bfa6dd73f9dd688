import { createServer } from 'node:http'

// Any app, in any language: it knows nothing of limits.
const server = createServer((_request, response) => response.setHeader('Content-Type', 'text/plain').end('hello\n'))

server.listen(process.env.PORT ?? 3000, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/`)
})
process.once('SIGTERM', () => {
  server.close()
  server.closeAllConnections()
})
