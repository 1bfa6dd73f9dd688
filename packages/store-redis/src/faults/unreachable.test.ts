import type { Server } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { LimiterSet } from '@sluice/core'
import { createLimiter } from '@sluice/core'
import { systemMonotonicMs } from '@sluice/core/internal'
import type { RedisServer } from '@sluice/testing/servers'
import { freePort, startRedis, startRedisCluster } from '@sluice/testing/servers'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { RedisStore, RedisStoreOptions } from '../redis-store.ts'
import { redisStore } from '../redis-store.ts'
import { LONG_WINDOW, patience, Tally, until, Witness } from './fault-trial.test.support.ts'

const DEADLINE_MS = 50

const RULES = {
  open: { algorithm: 'fixed-window', limit: 3, window: LONG_WINDOW, failureMode: 'open' },
  closed: { algorithm: 'fixed-window', limit: 3, window: LONG_WINDOW, failureMode: 'closed' },
  local: { algorithm: 'fixed-window', limit: 3, window: LONG_WINDOW, failureMode: 'local' },
} as const

type Name = keyof typeof RULES

function opened(
  target: unknown,
  options: RedisStoreOptions = {},
): { store: RedisStore; limits: LimiterSet<Name, 'async'> } {
  const store = redisStore(target, { denyCache: false, deadlineMs: DEADLINE_MS, ...options })
  onTestFinished(() => store.close())
  return { store, limits: createLimiter({ rules: RULES, store }) }
}

// The first store of a process loads the client and all it needs, which takes longer than a check may.
beforeAll(async () => {
  const store = redisStore(`redis://127.0.0.1:${await freePort()}`)
  await createLimiter({ rules: RULES, store }).limiter('local').check('key')
  await store.ready(100)
  await store.close()
})

describe('a store that Redis does not let in', () => {
  it('says why in every decision, and not the password', async () => {
    const server = await startRedis({ password: 'right' })
    onTestFinished(() => server.close())
    for (const [url, said] of [
      [`redis://127.0.0.1:${server.port}`, /NOAUTH.*Configure the user name and password of the client/],
      [`redis://:mistyped@127.0.0.1:${server.port}`, /WRONGPASS.*Correct the user name and password of the client/],
    ] as const) {
      const { limits } = opened(url)
      await until(
        'it has said why',
        async () => (await limits.limiter('open').check('key')).failure?.detail !== undefined,
      )
      const { failure } = await limits.limiter('open').check('key')
      expect(failure?.detail).toMatch(said)
      expect(failure?.detail).not.toContain('mistyped')
    }
  })
})

describe('a store whose Redis is unreachable at the start', () => {
  it('answers each rule by its failure mode', async ({ annotate }) => {
    const { limits } = opened(`redis://127.0.0.1:${await freePort()}`, { connectTimeoutMs: 0 })
    const tally = new Tally()
    const ask = async (rule: Name): Promise<boolean[]> => {
      const answers: boolean[] = []
      for (let call = 0; call < 5; call++) {
        answers.push((await tally.count(() => limits.limiter(rule).check('key'))).allowed)
      }
      return answers
    }
    expect(await ask('open')).toEqual([true, true, true, true, true])
    expect(await ask('closed')).toEqual([false, false, false, false, false])
    expect(await ask('local')).toEqual([true, true, true, false, false])
    const mixed = await limits.checkAll([
      { rule: 'open', key: 'key' },
      { rule: 'closed', key: 'key' },
    ])
    expect(mixed).toMatchObject({ allowed: false, reason: 'unavailable', failure: { mode: 'closed', charged: 'no' } })
    expect(tally.fellBack).toBe(tally.asked)
    expect(tally.longestMs).toBeLessThan(patience(DEADLINE_MS))
    await annotate(`away at the start: ${tally}`)
  })

  it('uses the server by itself as soon as it is there, and counts from nothing', async ({ annotate }) => {
    const port = await freePort()
    const { store, limits } = opened(`redis://127.0.0.1:${port}`)
    const limiter = limits.limiter('closed')
    await until('the breaker is open', async () => (await limiter.check('key')).failure?.cause === 'breaker')
    const server = await startRedis({ port })
    onTestFinished(() => server.close())
    let answer = await limiter.check('key')
    const tookMs = await until('Redis is used', async () => {
      if (answer.failure !== undefined) answer = await limiter.check('key')
      return answer.failure === undefined
    })
    expect(answer).toMatchObject({ allowed: true, remaining: 2 })
    expect(store.stats().breaker).toBe('closed')
    expect(tookMs).toBeLessThan(4000)
    await annotate(`used ${tookMs.toFixed(0)} ms after the server was there (aim: 2000)`)
  })

  it('ready() reports whether there is a connection', async () => {
    const port = await freePort()
    const { store } = opened(`redis://127.0.0.1:${port}`)
    expect(await store.ready(20)).toBe(false)
    const ready = store.ready()
    const server = await startRedis({ port })
    onTestFinished(() => server.close())
    expect(await ready).toBe(true)
    expect(await store.ready(0)).toBe(true)
  })

  it('ends the wait for a connection when it is closed', async () => {
    const { store } = opened(`redis://127.0.0.1:${await freePort()}`)
    const startedMs = systemMonotonicMs()
    const ready = store.ready(60_000)
    await store.close()
    expect(await ready).toBe(false)
    expect(systemMonotonicMs() - startedMs).toBeLessThan(10_000)
  })

  it('makes the first check wait for the connection being opened', async () => {
    const server = await startRedis()
    onTestFinished(() => server.close())
    const { limits } = opened(server.url, { deadlineMs: 5000 })
    expect(await limits.limiter('closed').check('key')).toMatchObject({ allowed: true, failure: undefined })
  })

  it('fails operations that have no failure mode, with the reason', async () => {
    const { limits } = opened(`redis://127.0.0.1:${await freePort()}`, { connectTimeoutMs: 0 })
    const limiter = limits.limiter('open')
    for (const change of [() => limiter.reset('key'), () => limiter.block('key', '1m')]) {
      await expect(change()).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE' })
    }
  })

  it('asks the caller to connect a client that is not connected', async () => {
    const client = createClient({ url: 'redis://127.0.0.1:1' })
    const { limits } = opened(client)
    await expect(limits.limiter('open').check('key')).rejects.toMatchObject({
      code: 'SLUICE_INVALID_OPTION',
      action: 'Call `await client.connect()` once, before the first check.',
    })
  })
})

describe('a server that rejects the store', () => {
  let secured: RedisServer
  let website: Server
  let encrypted: RedisServer

  beforeAll(async () => {
    website = createServer((_, response) => response.end('hello'))
    const listening = new Promise<void>((resolve) => website.listen(0, '127.0.0.1', resolve))
    const servers = [startRedis({ password: 'open sesame' }), startRedis({ tls: true })]
    ;[secured, encrypted] = (await Promise.all(servers)) as [RedisServer, RedisServer]
    await listening
    await secured.command('ACL', 'SETUSER', 'no-scripts', 'on', '>pass', '~*', '+@all', '-@scripting')
    await secured.command('ACL', 'SETUSER', 'no-writes', 'on', '>pass', '~*', '+@all', '-@write')
    await secured.command('ACL', 'SETUSER', 'other-keys', 'on', '>pass', '~other:*', '+@all')
  })

  afterAll(async () => {
    website.closeAllConnections()
    await Promise.all([secured.close(), encrypted.close(), new Promise((resolve) => void website.close(resolve))])
  })

  /** What the store says of the server at a URL, when it is known: the failure, and the errors. */
  async function complaintsOf(url: string, options: RedisStoreOptions = {}): Promise<{ cause: string; text: string }> {
    const witness = new Witness()
    const { observe } = witness
    const { limits } = opened(url, { connectTimeoutMs: 0, ...options, observe, breaker: { failures: 1000 } })
    let cause = ''
    await until('the store says why', async () => {
      const { failure } = await limits.limiter('open').check('key')
      cause = failure?.cause ?? ''
      return witness.messages.some((message) => !message.startsWith(NOTHING_KNOWN))
    })
    const text = witness.messages.filter((message) => !message.startsWith(NOTHING_KNOWN)).join('\n')
    expect(text).not.toContain('sesame')
    return { cause, text }
  }

  const NOTHING_KNOWN = 'SLUICE_STORE_UNAVAILABLE: there is no connection to Redis.'

  it.each([
    ['without a password', '', 'Configure the user name and password of the client'],
    ['with a wrong password', ':open%20barley@', 'Correct the user name and password of the client'],
    ['as a user that may not run scripts', 'no-scripts:pass@', 'the commands EVAL, EVALSHA'],
    ['as a user that may not write', 'no-writes:pass@', 'the commands EVAL, EVALSHA'],
    ['as a user that may not use the keys', 'other-keys:pass@', 'Allow the user the keys that start with the prefix'],
  ])('is named as the one that refuses, %s, with what to do', async (_, who, advice) => {
    const { cause, text } = await complaintsOf(`redis://${who}127.0.0.1:${secured.port}`)
    expect(cause).toBe('refused')
    expect(text).toContain(advice)
  })

  it('is distinguished from a server that is not Redis', async () => {
    const { cause, text } = await complaintsOf(`redis://127.0.0.1:${(website.address() as AddressInfo).port}`)
    expect(cause).toBe('unreachable')
    expect(text).toContain('Check that Redis listens at this address')
  })

  it('suggests TLS when it speaks nothing else', async () => {
    const { cause, text } = await complaintsOf(`redis://127.0.0.1:${encrypted.port}`)
    expect(cause).toBe('unreachable')
    expect(text).toContain('with TLS only for rediss://')
  })

  it('is not trusted with a certificate of an unknown authority', async () => {
    const { cause, text } = await complaintsOf(`rediss://127.0.0.1:${encrypted.port}`)
    expect(cause).toBe('unreachable')
    expect(text).toContain('Pass the certificate to trust as `tls: { ca }`')
  })

  it('is recognised as a node of a cluster', async () => {
    const cluster = await startRedisCluster({ masters: 3, replicasPerMaster: 0 })
    onTestFinished(() => cluster.close())
    const witness = new Witness()
    const { limits } = opened(cluster.urls[0]!, {
      observe: witness.observe,
      deadlineMs: 5000,
      breaker: { failures: 1000 },
    })
    const keys = Array.from({ length: 8 }, (_, index) => `key-${index}`)
    const together = await Promise.all(keys.map((key) => limits.limiter('open').check(key)))
    expect(together.map(({ failure }) => failure)).toEqual(
      keys.map(() => expect.objectContaining({ cause: 'refused' })),
    )
    for (const key of keys) await limits.limiter('open').check(key)
    expect(witness.messages.some((message) => message.includes('MOVED'))).toBe(true)
    for (const message of witness.messages) expect(message).toContain('`cluster: true` with the URL')
  })
})
