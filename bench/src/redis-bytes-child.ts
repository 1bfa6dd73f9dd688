import { createLimiter } from '@sluice/core'
import { redisStore } from '@sluice/store-redis'
import { Redis } from 'ioredis'

// Checks each of many users once under four windows, and prints by how much the memory of Redis grew. Started by the
// latency bench.

const { url, users } = JSON.parse(process.argv[2]!) as { readonly url: string; readonly users: number }
const MINUTE_MS = 60_000
const monitor = new Redis(url)

async function usedBytes(): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await monitor.info('memory'))?.[1])
}

const store = redisStore(url, { prefix: 'bytes', failureMode: 'closed', deadlineMs: 10_000 })
await store.ready()
const windows = [1, 60, 1440, 43_200].map((minutes) => ({ limit: 100 * minutes, window: minutes * MINUTE_MS }))
const limiter = createLimiter<'async'>({ windows, store })
await limiter.check('warm')
const before = await usedBytes()
for (let user = 0; user < users; user += 100) {
  await Promise.all(Array.from({ length: 100 }, (_, index) => limiter.check(`user-${user + index}`)))
}
const bytes = (await usedBytes()) - before
process.stdout.write(JSON.stringify({ bytes }))
process.exit(0)
