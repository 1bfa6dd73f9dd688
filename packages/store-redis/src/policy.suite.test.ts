import { policySuite } from '@sluice/testing'
import { startRedis } from '@sluice/testing/servers'
import { createClient } from 'redis'
import { afterAll } from 'vitest'
import { storeOver } from './clients/client-trial.test.support.ts'
import { nodeRedisConnection } from './clients/node-redis/node-redis-connection.ts'

const server = await startRedis()
const client = createClient({ url: server.url })
await client.connect()
const connection = nodeRedisConnection(client, () => Promise.resolve())

afterAll(async () => {
  client.destroy()
  await server.close()
})

policySuite('on Redis', { create: (clock) => storeOver(connection, clock) })
