import type { LimiterSet } from '@sluice/core'
import { createLimiter, systemTimers } from '@sluice/core'
import { systemMonotonicMs } from '@sluice/core/internal'
import { FakeClock, seededRandom } from '@sluice/testing'
import { startRedisCluster } from '@sluice/testing/servers'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { connectByUrl } from '../clients/connect-by-url.ts'
import { ClusterStore } from '../cluster-store.ts'
import type { RedisConnection } from '../connection/connection.ts'
import { LuaStore } from '../lua-store.ts'
import { runAfterIo } from '../system/event-loop.ts'
import { RedisKeys } from '../wire/call-encoding.ts'
import { ScriptRunner } from '../wire/script-runner.ts'
import { SETTLE } from '../wire/scripts.ts'
import { pause, until } from './ground.test.support.ts'

const RESERVED_MS = 10_000

const cluster = await startRedisCluster({ masters: 3, replicasPerMaster: 0 })
const connection = connectByUrl(cluster.urls, { cluster: true })
afterAll(async () => {
  await connection.close()
  await cluster.close()
})

/** Runs before each settlement of a key is sent. If it throws, the settlement fails with that error. */
type Gate = (record: string) => void | Promise<void>

const rules = {
  ann: { algorithm: 'sliding-window-counter' as const, limit: 10, window: '10h' as const },
  acme: { algorithm: 'fixed-window' as const, limit: 10, window: '10h' as const },
  all: { algorithm: 'sliding-window-log' as const, limit: 10, window: '10h' as const },
}
type Name = keyof typeof rules
const NAMES = ['ann', 'acme', 'all'] as const
const requests = NAMES.map((rule) => ({ rule, key: rule, cost: 3 }))

let prefixes = 0
let clock: FakeClock
let prefix: string

beforeEach(async () => {
  await until('the cluster is connected', () => connection.isReady())
  clock = new FakeClock()
  prefix = `half-way-${prefixes++}`
})

function limitersBehind(gate: Gate): LimiterSet<Name, 'async'> {
  const gated: RedisConnection = {
    client: connection.client,
    isCluster: true,
    isReady: () => true,
    async send(command, key) {
      const script = command[1]
      if (script === SETTLE.digest || script === SETTLE.body) await gate(key)
      return await connection.send(command, key)
    },
    close: () => Promise.resolve(),
  }
  const runner = new ScriptRunner(gated, pause)
  const luaStore = new LuaStore({
    connection: gated,
    runner,
    prefix,
    clock,
    usesClock: true,
    monotonicMs: systemMonotonicMs,
    runAfterIo,
    timers: systemTimers,
  })
  return createLimiter<Name, 'async'>({ store: new ClusterStore(luaStore, seededRandom(1)), rules })
}

/** What is left under each rule, in the eyes of a process that nothing happens to. */
async function left(): Promise<(number | null)[]> {
  const limiters = limitersBehind(() => undefined)
  return await Promise.all(NAMES.map(async (name) => (await limiters.limiter(name).peek(name)).remaining))
}

async function untilLeft(expected: readonly number[]): Promise<void> {
  await until(`there is ${expected} left`, async () => (await left()).join() === expected.join()).catch(async () =>
    expect(await left()).toEqual(expected),
  )
}

describe('a decision over three slots of a cluster', () => {
  it('that nothing happens to is charged everywhere, and given back everywhere', async () => {
    const limiters = limitersBehind(() => undefined)
    const decision = await limiters.checkAll(requests)
    expect(decision).toMatchObject({ allowed: true, cost: 3, remaining: 7 })
    expect(await left()).toEqual([7, 7, 7])
    clock.advance(2 * RESERVED_MS)
    expect(await left()).toEqual([7, 7, 7])
    expect(await limiters.refund(decision)).toMatchObject({ outcome: 'settled', corrected: -9 })
    expect(await left()).toEqual([10, 10, 10])
  })

  it('whose process dies before it is confirmed gives itself back', async () => {
    const dying = limitersBehind(() => {
      throw new Error('the process is gone')
    })
    await expect(dying.checkAll(requests)).rejects.toThrow('SLUICE_OUTCOME_UNKNOWN')
    expect(await left()).toEqual([7, 7, 7])
    clock.advance(RESERVED_MS - 1)
    expect(await left()).toEqual([7, 7, 7])
    clock.advance(1)
    expect(await left()).toEqual([10, 10, 10])
  })

  it('is undone everywhere when the confirmation of one part comes too late', async () => {
    const record = new RedisKeys(prefix).record('acme')
    let open = (): void => undefined
    const held = new Promise<void>((resolve) => {
      open = resolve
    })
    let confirming = 0
    const slow = limitersBehind(async (key) => {
      confirming++
      if (key === record) await held
    })
    const answer = expect(slow.checkAll(requests)).rejects.toThrow('it was undone')
    await until('all parts are being confirmed', () => confirming === 3)
    expect(await left()).toEqual([7, 7, 7])
    clock.advance(RESERVED_MS)
    // A check of all three gives back what has expired.
    expect(await left()).toEqual([7, 10, 7])
    open()
    await answer
    await untilLeft([10, 10, 10])
  })

  it('is undone everywhere when one part cannot be confirmed', async () => {
    const record = new RedisKeys(prefix).record('all')
    const cutOff = limitersBehind((key) => {
      if (key === record) throw new Error('the connection broke')
    })
    await expect(cutOff.checkAll(requests)).rejects.toThrow('SLUICE_OUTCOME_UNKNOWN')
    await untilLeft([10, 10, 7])
    clock.advance(RESERVED_MS)
    expect(await left()).toEqual([10, 10, 10])
  })
})
