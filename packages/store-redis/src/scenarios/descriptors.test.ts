import { memoryStore } from '@sluice/core'
import type { DescriptorDecision, DescriptorNode } from '@sluice/core/policy'
import { PolicyEngine } from '@sluice/core/policy'
import { FakeClock } from '@sluice/testing'
import { startRedis } from '@sluice/testing/servers'
import { createClient } from 'redis'
import { afterAll, describe, expect, it } from 'vitest'
import { storeOver } from '../clients/client-trial.test.support.ts'
import { nodeRedisConnection } from '../clients/node-redis/node-redis-connection.ts'

const server = await startRedis()
const client = createClient({ url: server.url })
await client.connect()
const connection = nodeRedisConnection(client, () => Promise.resolve())

afterAll(async () => {
  client.destroy()
  await server.close()
})

const limit = (requestsPerUnit: number) => ({ unit: 'minute', requestsPerUnit }) as const

const DESCRIPTORS: readonly DescriptorNode[] = [
  { key: 'user', limit: { ...limit(3), name: 'users' } },
  { key: 'tenant', limit: limit(5) },
  { key: 'watched', limit: limit(1), shadow: true },
  { key: 'model', value: 'a*', limit: limit(2), quota: true },
  { key: 'model', value: 'b', limit: limit(2), quota: true },
  { key: 'tokens', limit: { ...limit(10), drain: true } },
  { key: 'plan', value: 'gold', limit: { ...limit(4), replaces: ['users'] } },
]

/** Requests as `key=value` lists, each a descriptor of its own; `key=value*3` has 3 hits. */
const REQUESTS = [
  ['user=u1', 'tenant=t'],
  ['user=u1', 'tenant=t', 'watched=x'],
  ['user=u1', 'watched=x'],
  ['user=u1', 'tenant=t'],
  ['tenant=t', 'model=a1'],
  ['model=a1', 'model=b'],
  ['model=a1', 'model=b'],
  ['model=a1', 'model=b'],
  ['user=u1', 'plan=gold'],
  ['user=u2', 'user=u2'],
  ['nothing=here', 'tenant=t'],
  ['tokens=t*7', 'watched=x'],
  ['tokens=t*7', 'user=u3'],
  ['tokens=t*0', 'user=u3'],
]

describe('requests by descriptors', () => {
  it('get the same answers on Redis as in memory: all or nothing, shadow, quota and replaced limits', async () => {
    const ruleSet = { rules: [], domains: [{ domain: 'shop', descriptors: DESCRIPTORS }] }
    const answersOf = async (open: (clock: FakeClock) => PolicyEngine): Promise<unknown[]> => {
      const clock = new FakeClock()
      const engine = open(clock)
      const answers: unknown[] = []
      for (const texts of [...REQUESTS, ...REQUESTS]) {
        const descriptors = texts.map((text) => {
          const [key = '', value = '', hits] = text.split(/[=*]/)
          return { entries: [{ key, value }], ...(hits !== undefined && { hitsAddend: Number(hits) }) }
        })
        const decision: DescriptorDecision = await engine.decideDescriptors({ domain: 'shop', descriptors })
        answers.push([decision.code, decision.statuses.map(({ code, remaining }) => [code, remaining])])
        clock.advance(3000)
      }
      return answers
    }
    const inMemory = await answersOf((clock) => new PolicyEngine({ store: memoryStore({ clock }), ruleSet, clock }))
    const onRedis = await answersOf(
      (clock) => new PolicyEngine({ store: storeOver(connection, clock), ruleSet, clock }),
    )
    expect(onRedis).toEqual(inMemory)
    expect(new Set(inMemory.map((answer) => (answer as unknown[])[0]))).toEqual(new Set(['ok', 'over']))
  })
})
