import { expectSameDecisions, expectSameStores, FakeClock, ReferenceStore, storeSuite } from '@sluice/testing'
import { startRedis } from '@sluice/testing/servers'
import { createClient } from 'redis'
import { afterAll, describe, it } from 'vitest'
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

storeSuite('on Redis', { create: (clock) => storeOver(connection, clock) })

describe('random operations get the same answers as from the reference store', () => {
  it('on Redis', async () => {
    await expectSameStores((clock) => ({ one: new ReferenceStore(clock), other: storeOver(connection, clock) }), {
      numRuns: 600,
      leases: true,
    })
  })

  it('when a lease has ended next to a state that has expired by the next check', async () => {
    const clock = new FakeClock()
    const target = { rule: 'meter', key: 'a', cost: 1 } as const
    const check = { kind: 'check', ...target, partial: false, entitled: true } as const
    await expectSameDecisions(new ReferenceStore(clock), storeOver(connection, clock), {
      operations: [
        { kind: 'lease', ...target, ms: 1, partial: false },
        check,
        { kind: 'advance', ms: 3001 },
        // Another rule of the same key, which makes the record be rewritten.
        { ...check, rule: 'fixed' },
        { ...check, cost: 0 },
        check,
      ],
      clock,
    })
  })
})
