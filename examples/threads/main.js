import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { sharedMemoryStore } from 'sluice'

const store = sharedMemoryStore()
const threads = Math.max(2, availableParallelism())
const workers = []
let port = process.env.PORT ?? 3000

for (let number = 1; number <= threads; number++) {
  const workerData = { store: store.handle(), number, port }
  const worker = new Worker(new URL('server.js', import.meta.url), { workerData })
  workers.push(worker)
  // When any port will do, the first thread finds one for all.
  const [listening] = await once(worker, 'message')
  port = listening
}
console.log(`http://127.0.0.1:${port}/`)

process.once('SIGTERM', () => {
  for (const worker of workers) worker.postMessage('stop')
})
