import { createServer } from 'node:http2'

// A bare node:http2 server that answers every message with the same message, as gRPC frames it, and trailers: what a
// gRPC service on node:http2 can reach at best. Started by the grpc bench.

const HEADERS = { ':status': 200, 'content-type': 'application/grpc' }

const server = createServer()
server.on('stream', (stream) => {
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  stream.on('end', () => {
    stream.respond(HEADERS, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
    stream.end(Buffer.concat(chunks))
  })
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (typeof address === 'object' && address !== null) console.log(`http://127.0.0.1:${address.port}`)
})
process.on('SIGTERM', () => process.exit(0))
