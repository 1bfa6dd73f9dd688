import type { Rule } from '@sluice/core'
import { createLimiter } from '@sluice/core'
import { deferredStore, FakeClock, ReferenceStore } from '@sluice/testing'
import { startRedis } from '@sluice/testing/servers'
import fc from 'fast-check'
import { createClient } from 'redis'
import { afterAll, describe, expect, it } from 'vitest'
import { storeOver } from './clients/client-trial.test.support.ts'
import { nodeRedisConnection } from './clients/node-redis-connection.ts'

// Several levels of one rule have a way of their own through the script: they are read, sunk, raised and written together.

const server = await startRedis()
const client = createClient({ url: server.url })
await client.connect()
const connection = nodeRedisConnection(client, () => Promise.resolve())

afterAll(async () => {
  client.destroy()
  await server.close()
})

/** Rates that are no whole number of micro-units in a microsecond, so that every rounding shows. */
const LEVELS: Rule = {
  windows: [
    { limit: 7, window: 3_001 },
    { limit: 11, window: 9_973 },
    { limit: 23, window: 61_000 },
  ],
}

interface Turn {
  readonly calls: readonly { readonly key: string; readonly cost: number }[]
  /** How far the clock moves after it, in microseconds; below 0 it goes back. */
  readonly micros: number
}

const turns: fc.Arbitrary<readonly Turn[]> = fc.array(
  fc.record({
    calls: fc.array(
      fc.record({
        key: fc.constantFrom('a', 'b'),
        cost: fc.oneof({ weight: 3, arbitrary: fc.constant(1) }, fc.integer({ min: 2, max: 4 })),
      }),
      { minLength: 1, maxLength: 8 },
    ),
    micros: fc.oneof(
      { weight: 6, arbitrary: fc.integer({ min: 0, max: 2_000_000 }) },
      fc.integer({ min: -400_000, max: -1 }),
      fc.integer({ min: 0, max: 90_000_000 }),
    ),
  }),
  { minLength: 2, maxLength: 12 },
)

describe('several levels of one rule', () => {
  it('property: are decided as the reference decides them, also when the clock goes back', async () => {
    await fc.assert(
      fc.asyncProperty(turns, async (all) => {
        const clock = new FakeClock()
        const [ours, reference] = [storeOver(connection, clock), deferredStore(new ReferenceStore(clock))].map(
          (store) => createLimiter<'async'>({ ...LEVELS, store, clock }),
        )
        for (const { calls, micros } of all) {
          const together = await Promise.all(calls.map(({ key, cost }) => ours!.check(key, { cost })))
          const expected: unknown[] = []
          for (const { key, cost } of calls) expected.push({ ...(await reference!.check(key, { cost })) })
          expect(together.map((decision) => ({ ...decision }))).toEqual(expected)
          clock.setMicros(clock.nowMicros() + micros)
        }
      }),
      { numRuns: 200 },
    )
  })
})
