import { createLimiter, systemTimers } from '@sluice/core'
import { compileRule, systemMonotonicMs } from '@sluice/core/internal'
import { expectSameStores, FakeClock, ReferenceStore, seededRandom, storeSuite } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { ClusterStore } from '../cluster-store.ts'
import type { RedisConnection } from '../connection/connection.ts'
import { serverCodeOf } from '../connection/connection.ts'
import { LuaStore } from '../lua-store.ts'
import { runAfterIo } from '../system/event-loop.ts'
import { ScriptRunner } from '../wire/script-runner.ts'
import { scriptOf } from '../wire/scripts.ts'

/** Random operations for each client; the store itself is tested with many more. */
const RUNS = 60

const ALL_BYTES: Buffer = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))

let stores = 0

/** A store over a connection that stays open when the store is closed. */
export function storeOver(connection: RedisConnection, clock: FakeClock, prefix = 'trial'): LuaStore | ClusterStore {
  const kept = keptOpen(connection)
  const runner = new ScriptRunner(kept, pause)
  const parts = {
    connection: kept,
    runner,
    prefix: `${prefix}:${stores++}`,
    clock,
    usesClock: true,
    monotonicMs: systemMonotonicMs,
    runAfterIo,
    timers: systemTimers,
  }
  const luaStore = new LuaStore(parts)
  return connection.isCluster ? new ClusterStore(luaStore, seededRandom(7)) : luaStore
}

function keptOpen(connection: RedisConnection): RedisConnection {
  return {
    client: connection.client,
    isCluster: connection.isCluster,
    isReady: () => connection.isReady(),
    send: (command, key) => connection.send(command, key),
    close: () => Promise.resolve(),
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void systemTimers.schedule(ms, resolve))
}

/** Asks every 10 ms until the answer is yes, a thousand times at most. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 1000; tries++) {
    if (await holds()) return
    await pause(10)
  }
  throw new Error(`waited in vain until ${what}`)
}

/**
 * Waits until something can be written beside a key, which has no tag: a node that is no primary any more may still
 * read.
 */
export function untilAnswered(connection: RedisConnection, key: string): Promise<void> {
  return until('the server answers', async () => {
    if (!connection.isReady()) return false
    return await connection.send(['EVAL', "return redis.call('SET', KEYS[1], '')", '1', `{${key}}probe`], key).then(
      () => true,
      () => false,
    )
  })
}

/** Error replies that are recognised by their code. */
const PERMANENT_ERRORS = ['BUSY', 'CROSSSLOT', 'ERR', 'MISCONF', 'NOAUTH', 'NOPERM', 'NOREPLICAS', 'OOM', 'WRONGTYPE']

/** Answers that a client may keep to itself for a while, because the cluster is about to change. */
const TEMPORARY_ERRORS = ['CLUSTERDOWN', 'LOADING', 'MASTERDOWN', 'READONLY', 'TRYAGAIN']

/** What every client must do, over a connection that is made before the tests run. */
export function clientSuite(
  name: string,
  connection: () => RedisConnection,
  { waitsForTheCluster = false }: { readonly waitsForTheCluster?: boolean } = {},
): void {
  storeSuite(`on ${name}`, { create: (clock) => storeOver(connection(), clock) })

  describe(name, () => {
    it('gives the same answers as the reference store', async () => {
      await expectSameStores((clock) => ({ one: new ReferenceStore(clock), other: storeOver(connection(), clock) }), {
        numRuns: RUNS,
        leases: !connection().isCluster,
      })
    })

    it('forgets the counters of a rule for all keys, and leaves those of other rules', async () => {
      const clock = new FakeClock()
      const store = storeOver(connection(), clock)
      const rules = {
        level: { limit: 3, window: '1h' },
        log: { algorithm: 'sliding-window-log', limit: 3, window: '1h' },
        other: { limit: 3, window: '1h' },
      } as const
      const set = createLimiter<keyof typeof rules, 'async'>({ rules, store, clock })
      const keys = Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? `user-${index}` : `{user} ${index}`))
      const checks = keys.flatMap((key) =>
        Object.keys(rules).map((rule) => ({ rule: rule as keyof typeof rules, key })),
      )
      await Promise.all(checks.map(({ rule, key }) => set.limiter(rule).check(key)))
      await store.resetAll([...compileRule('level', rules.level), ...compileRule('log', rules.log)])
      const left = await Promise.all(checks.map(({ rule, key }) => set.limiter(rule).peek(key)))
      expect(left.map(({ rule, remaining }) => [rule, remaining])).toEqual(
        checks.map(({ rule }) => [rule, rule === 'other' ? 2 : 3]),
      )
    })

    it('sends and receives every byte', async () => {
      const key = `${name}-bytes`
      await connection().send(['SET', key, ALL_BYTES], key)
      expect(await connection().send(['GET', key], key)).toEqual(ALL_BYTES)
      const echo = ['EVAL', 'return {ARGV[1], 7, false}', '1', key, ALL_BYTES]
      expect(await connection().send(echo, key)).toEqual([ALL_BYTES, 7, null])
    })

    it('tells the answers of the server by their code', async () => {
      const key = `${name}-codes`
      for (const code of waitsForTheCluster ? PERMANENT_ERRORS : [...PERMANENT_ERRORS, ...TEMPORARY_ERRORS]) {
        const script = `return redis.error_reply('${code} not now')`
        const error = await connection()
          .send(['EVAL', script, '1', key], key)
          .catch((reason: unknown) => reason)
        expect(serverCodeOf(error)).toBe(code)
      }
    })

    it('sends the text of a script to a server that does not know it, once', async () => {
      const key = `${name}-script`
      const runner = new ScriptRunner(connection(), pause)
      const script = scriptOf('count', `return redis.call('INCR', KEYS[1]) -- ${name}`)
      expect(await runner.run(script, [key], [])).toBe(1)
      await connection().send(['EVAL', "return redis.call('DEL', KEYS[1])", '1', key], key)
      expect(await runner.run(script, [key], [])).toBe(1)
      expect(await runner.run(script, [key], [])).toBe(2)
    })
  })
}
