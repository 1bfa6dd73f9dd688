import { createServer } from 'node:http'
import { parentPort, workerData } from 'node:worker_threads'
import express from 'express'
import { attachSharedMemoryStore } from 'sluice'
import { rateLimit } from 'sluice/express'

const store = attachSharedMemoryStore(workerData.store)
const app = express()

app.use(rateLimit({ limit: 20, window: '1h', store }))
app.get('/', (_request, response) => response.type('text').send(`hello from thread ${workerData.number}\n`))

const server = createServer(app)
// The system spreads the connections to one port over all who listen there.
server.listen({ port: workerData.port, host: '127.0.0.1', reusePort: true }, () =>
  parentPort.postMessage(server.address().port),
)
parentPort.once('message', () => server.close(() => store.close()))
