// Run as a process or a thread of its own, next to others, with an address, a name and a number of changes.
import { workerData } from 'node:worker_threads'
import { openConfigStore } from '../../open-config-store.ts'

const [url, name, changes] = (workerData ?? process.argv.slice(2)) as [string, string, string]
const store = await openConfigStore(url)
for (let index = 0; index < Number(changes); index++) {
  const entry = { dimension: 'user', entity: `${name}-${index}`, resource: '*', terms: { limit: index } }
  await store.overrides.put(entry, { name })
}
await store.close()
