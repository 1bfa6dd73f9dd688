import type { LimiterSet } from '@sluice/core'
import { createLimiter } from '@sluice/core'
import type { RedisServer } from '@sluice/testing/servers'
import { startRedis } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { RedisConnection } from '../connection/connection.ts'
import type { RedisStore, RedisStoreOptions } from '../redis-store.ts'
import { redisStore } from '../redis-store.ts'
import { inspectServer } from '../server-warnings.ts'
import { ScriptRunner } from '../wire/script-runner.ts'
import { LONG_WINDOW, Tally, until, Witness } from './fault-trial.test.support.ts'

const RULES = {
  closed: { algorithm: 'fixed-window', limit: 10, window: LONG_WINDOW, failureMode: 'closed' },
  open: { limit: 10, window: LONG_WINDOW, failureMode: 'open' },
  local: { algorithm: 'sliding-window-log', limit: 10, window: LONG_WINDOW, failureMode: 'local' },
  slots: { algorithm: 'concurrency', limit: 10, lease: '1h', failureMode: 'closed' },
} as const

type Name = keyof typeof RULES
const NAMES = Object.keys(RULES) as Name[]

let server: RedisServer
let stores = 0

beforeAll(async () => {
  server = await startRedis({ config: { 'maxmemory-policy': 'noeviction' } })
})

afterAll(() => server.close())

function opened(options: RedisStoreOptions = {}): { store: RedisStore; limits: LimiterSet<Name, 'async'> } {
  const store = redisStore(server.url, { deadlineMs: 5000, denyCache: false, prefix: `memory-${stores++}`, ...options })
  onTestFinished(() => store.close())
  return { store, limits: createLimiter({ rules: RULES, store }) }
}

/** Uses up the memory that the server may have, by about 2 MB more than it may. */
async function fill(): Promise<void> {
  await server.command('CONFIG', 'SET', 'maxmemory', 0)
  for (let index = 0; index < 8; index++) await server.command('SET', `filler-${index}`, 'x'.repeat(500_000))
  const used = /used_memory:(\d+)/.exec(String(await server.command('INFO', 'memory')))?.[1]
  await server.command('CONFIG', 'SET', 'maxmemory', Number(used) - 2_000_000)
}

async function free(): Promise<void> {
  const fillers = (await server.command('KEYS', 'filler-*')) as string[]
  await server.command('DEL', ...fillers)
}

describe('a server that is out of memory and may not evict', () => {
  it('answers by failure mode, writes nothing by halves, and counts on when there is memory again', async ({
    annotate,
  }) => {
    const witness = new Witness()
    const { store, limits } = opened({ observe: witness.observe, breaker: { failures: 1000, basePauseMs: 20 } })
    const peek = (): Promise<(number | null)[]> =>
      Promise.all(NAMES.map(async (rule) => (await limits.limiter(rule).peek('key')).remaining))
    for (const rule of NAMES) await limits.limiter(rule).check('key', { cost: 2 })
    const charged = await limits.limiter('closed').check('key', { cost: 3 })
    expect(await peek()).toEqual([5, 8, 8, 8])

    await fill()
    const tally = new Tally()
    const ask = (rule: Name): Promise<unknown> => tally.count(() => limits.limiter(rule).check('key'))
    for (const rule of NAMES) await ask(rule)
    expect(tally.origins).toEqual({ 'closed refused no': 2, 'open refused no': 1, 'local refused no': 1 })
    expect(tally.allowed).toBe(2)
    for (const keys of [
      ['key', 'key'],
      ['key', 'other-1'],
      ['other-1', 'other-2'],
    ] as const) {
      const decision = await limits.checkAll([
        { rule: 'local', key: keys[0], cost: 2 },
        { rule: 'closed', key: keys[1], cost: 2 },
      ])
      expect(decision).toMatchObject({
        allowed: false,
        reason: 'unavailable',
        failure: { cause: 'refused', charged: 'no' },
      })
    }
    expect(await limits.limiter('closed').reserve('key', { cost: 2 })).toMatchObject({ allowed: false })
    await expect(limits.refund(charged)).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE' })
    expect(witness.messages.join()).toContain('raise maxmemory, or use a separate instance for limits')

    // What needs no memory is still answered by the server.
    expect(await limits.limiter('closed').peek('key')).toMatchObject({ remaining: 5, failure: undefined })
    expect(await limits.limiter('closed').check('key', { cost: 6 })).toMatchObject({
      reason: 'limit',
      failure: undefined,
    })

    await free()
    await until('Redis is used again', () => store.stats().breaker === 'closed')
    expect(await peek()).toEqual([5, 8, 8, 8])
    for (const key of ['other-1', 'other-2']) {
      expect((await limits.limiter('closed').peek(key)).remaining).toBe(10)
      expect((await limits.limiter('local').peek(key)).remaining).toBe(10)
    }
    expect(await limits.limiter('closed').check('key')).toMatchObject({ allowed: true, remaining: 4 })
    await annotate(`out of memory: ${tally}; counted exactly what was admitted before and after`)
  })

  it('opens the breaker, and is used again by itself', async ({ annotate }) => {
    const { store, limits } = opened()
    await limits.limiter('closed').check('key')
    await fill()
    await until(
      'the breaker is open',
      async () => (await limits.limiter('closed').check('key')).failure?.cause === 'breaker',
    )
    await free()
    const backMs = await until('Redis is used again', async () => {
      return (await limits.limiter('closed').check('key')).failure === undefined
    })
    expect(await limits.limiter('closed').peek('key')).toMatchObject({ remaining: 8 })
    expect(store.stats().breaker).toBe('closed')
    expect(backMs).toBeLessThan(4000)
    await annotate(`used again ${backMs.toFixed(0)} ms after there was memory (aim: 2000)`)
  })
})

describe('a server that may evict counters', () => {
  beforeAll(async () => void (await server.command('CONFIG', 'SET', 'maxmemory-policy', 'volatile-lru')))
  afterAll(async () => void (await server.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction')))

  it('is reported once, with the fix', async () => {
    const warnings: { code: string; message: string }[] = []
    const { limits } = opened({ onWarning: (warning) => warnings.push(warning) })
    await limits.limiter('open').check('key')
    await until('it warns', async () => {
      await limits.limiter('open').check('key')
      return warnings.length > 0
    })
    for (let call = 0; call < 20; call++) await limits.limiter('open').check('key')
    expect(warnings.map(({ code }) => code)).toEqual(['SLUICE_EVICTION'])
    expect(warnings[0]!.message).toMatch(
      /maxmemory-policy is "volatile-lru", expected "noeviction".*separate instance for limits/s,
    )
  })

  it('is reported as a process warning without a callback', async () => {
    // Not let through, so that it is not printed.
    const emit = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    const { limits } = opened()
    await until('the process warns', async () => {
      await limits.limiter('open').check('key')
      return emit.mock.calls.length > 0
    })
    for (let call = 0; call < 20; call++) await limits.limiter('open').check('key')
    expect(emit.mock.calls).toEqual([
      [expect.stringContaining('maxmemory-policy'), { type: 'SluiceWarning', code: 'SLUICE_EVICTION' }],
    ])
  })

  it('works on when the warning callback throws', async () => {
    let told = 0
    const { limits } = opened({
      onWarning: () => {
        told++
        throw new Error('not my business')
      },
    })
    await until('it was told', async () => {
      expect((await limits.limiter('closed').check('key', { cost: 0 })).failure).toBeUndefined()
      return told > 0
    })
  })
})

describe('what is known of a server', () => {
  /** A server that answers INFO and CONFIG GET with these, or refuses. */
  function answering(info: string | undefined, policy: unknown): ScriptRunner {
    const connection: RedisConnection = {
      client: 'fake',
      isCluster: false,
      isReady: () => true,
      send: ([command]) => {
        const reply = command === 'INFO' ? info : policy
        return reply === undefined ? Promise.reject(new Error('NOPERM not for you')) : Promise.resolve(reply)
      },
      close: () => Promise.resolve(),
    }
    return new ScriptRunner(connection, () => Promise.resolve())
  }

  const version = (text: string): string => `# Server\r\nredis_version:${text}\r\nredis_mode:standalone\r\n`

  it.each(['6.0.20', '5.0.14', '2.8.0'])('Redis %s is too old, and is said to be', async (text) => {
    const warnings = await inspectServer(answering(version(text), undefined))
    expect(warnings.map(({ code }) => code)).toEqual(['SLUICE_SERVER_TOO_OLD'])
    expect(warnings[0]!.message).toContain('expected 6.2 or later')
  })

  it.each(['6.2.0', '7.0.15', '8.4.1', '10.0.0'])('Redis %s is not', async (text) => {
    expect(await inspectServer(answering(version(text), undefined))).toEqual([])
  })

  it('nothing, when INFO is not permitted', async () => {
    expect(await inspectServer(answering(undefined, undefined))).toEqual([])
  })

  it.each([
    ['a list', [Buffer.from('maxmemory-policy'), Buffer.from('allkeys-lru')]],
    ['a map', new Map([['maxmemory-policy', 'allkeys-lru']])],
    ['an object', { 'maxmemory-policy': 'allkeys-lru' }],
  ])('its policy, told as %s', async (_, policy) => {
    const warnings = await inspectServer(answering(undefined, policy))
    expect(warnings.map(({ code }) => code)).toEqual(['SLUICE_EVICTION'])
  })
})
