import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PostgresServer, RedisCluster, RedisServer, SentinelGroup } from '@sluice/testing/servers'
import { freePort, startPostgres, startRedis, startRedisCluster, startSentinel } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { RunOptions, RunOutcome } from '../cli.test.support.ts'
import { cliRunner } from '../cli.test.support.ts'
import type { ServiceProcess } from '../service-process.test.support.ts'
import { startServiceProcess } from '../service-process.test.support.ts'
import type { Finding } from './finding.ts'

/** A command line of the doctor on an empty folder, with a free port and nothing else. */
async function bare(): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-doctor-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const [port, other] = [await freePort(), await freePort()]
  return ['doctor', '--port', String(port), '--url', `http://127.0.0.1:${other}`, '--data-dir', join(folder, 'data')]
}

async function examine(
  args: readonly string[],
  options: RunOptions = {},
): Promise<{ readonly outcome: RunOutcome; finding(check: string): Finding | undefined }> {
  const outcome = await cliRunner(options)(...args, '--json')
  const { findings } = outcome.json<{ findings: readonly Finding[] }>()
  return { outcome, finding: (check) => findings.find((each) => each.check === check) }
}

describe('without a service', () => {
  it('looks at what it can, and says what to do', async () => {
    const line = await bare()
    const { outcome, finding } = await examine(line)
    expect(outcome.code).toBe(0)
    expect(finding('node')).toMatchObject({ status: 'ok', found: '24.0.0' })
    expect(finding('port')).toMatchObject({
      status: 'ok',
      found: expect.stringMatching(/^\d+ on 127\.0\.0\.1 is free$/),
    })
    expect(finding('data folder')).toMatchObject({
      status: 'ok',
      found: expect.stringContaining('will be created when'),
    })
    expect(finding('redis')).toMatchObject({ status: 'skipped' })
    expect(finding('service')).toMatchObject({ status: 'warning', advice: expect.stringContaining('sluice serve') })
    const told = await cliRunner()(...line)
    expect(told.out).toMatch(/^ok +node +24\.0\.0$/m)
    expect(told.out).toMatch(/^warning {2}service +http:\S+ does not answer .*\n +-> Start it with "sluice serve"/m)
    expect(told.out).toMatch(/\n\n0 failed, 1 warning, 3 ok, 1 skipped\n$/)
    const { out } = await cliRunner({ env: { FORCE_COLOR: '1' } })(...line)
    const shown = out.replaceAll('\u001B', '')
    expect(shown).toMatch(/^\[32mok\[39m +node/m)
    expect(shown).toMatch(/^\[33mwarning\[39m {2}service/m)
    expect(shown).toMatch(/^\[2mskipped\[22m {2}redis/m)
    expect(shown).toMatch(/\n\n\[33m0 failed, 1 warning\[39m, 3 ok, 1 skipped\n$/)
    expect((await cliRunner({ env: { FORCE_COLOR: '1' } })(...line, '--json')).out).not.toContain('\u001B')
  })

  it('fails on a Node that is too old', async () => {
    const { outcome, finding } = await examine(await bare(), { nodeVersion: '22.12.0' })
    expect(finding('node')).toMatchObject({ status: 'failed', advice: expect.stringContaining('https://nodejs.org') })
    expect(outcome.code).toBe(1)
  })

  it('fails on a port that is in use, or on an address of another machine', async () => {
    const server = createServer()
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())))
    const { port } = server.address() as AddressInfo
    const taken = await examine([...(await bare()).slice(0, 1), ...(await bare()).slice(3), '--port', String(port)])
    expect(taken.finding('port')).toMatchObject({
      status: 'failed',
      advice: expect.stringContaining(`PORT=${port + 1}`),
    })
    expect(taken.outcome.code).toBe(1)
    const elsewhere = await examine([...(await bare()), '--host', '192.0.2.1'])
    expect(elsewhere.finding('port')).toMatchObject({
      status: 'failed',
      found: expect.stringContaining('EADDRNOTAVAIL'),
    })
  })

  it('takes settings of the service from its variables', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-doctor-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const port = await freePort()
    const env = {
      SLUICE_URL: `http://127.0.0.1:${await freePort()}`,
      PORT: String(port),
      HOST: 'localhost',
      SLUICE_DATA_DIR: folder,
      REDIS_URL: `redis://user:pass@127.0.0.1:${await freePort()}`,
      DATABASE_URL: `postgres://user:pass@127.0.0.1:${await freePort()}/config`,
    }
    const { outcome, finding } = await examine(['doctor'], { env })
    expect(finding('port')?.found).toBe(`${port} on localhost is free`)
    expect(finding('data folder')?.found).toBe(folder)
    expect(finding('redis')).toMatchObject({ status: 'failed', found: expect.stringContaining('ECONNREFUSED') })
    expect(finding('database')).toMatchObject({
      status: 'failed',
      found: expect.stringContaining('is not usable (connect ECONNREFUSED'),
    })
    // SQLite in the data folder is not used, so it is not reported.
    expect(outcome.out).not.toContain('no tables yet')
    expect(outcome.out).not.toContain('pass@')
    expect(outcome.code).toBe(1)
  })

  it('looks at the port of the admin API too, and asks there', async () => {
    const [port, adminPort] = [await freePort(), await freePort()]
    const env = { PORT: String(port), ADMIN_PORT: String(adminPort), ADMIN_HOST: 'localhost' }
    const { outcome, finding } = await examine(['doctor', ...(await bare()).slice(5)], { env })
    const { findings } = outcome.json<{ findings: readonly Finding[] }>()
    expect(findings.filter(({ check }) => check === 'port').map(({ found }) => found)).toEqual([
      `${port} on 127.0.0.1 is free`,
      `${adminPort} on localhost is free`,
    ])
    expect(finding('service')?.found).toContain(`http://localhost:${adminPort} `)
  })

  it('looks at the routes and the port of the gateway', async () => {
    const line = await bare()
    const gatewayPort = await freePort()
    const file = `${line.at(-1)}.yaml`
    onTestFinished(() => rm(file))
    const routes = [{ name: 'all', match: { path: '/*' }, upstream: 'app' }]
    const upstreams = { app: { instances: [{ url: 'http://127.0.0.1:3000' }] } }
    await writeFile(file, JSON.stringify({ service: { gatewayPort }, rules: [], routes, upstreams }))
    const { outcome } = await examine([...line, '--config', file])
    const { findings } = outcome.json<{ findings: readonly Finding[] }>()
    expect(findings.map(({ found }) => found)).toContain(`${gatewayPort} on 127.0.0.1 is free`)
    // With rules and without, which are in the database then.
    for (const rules of [{ rules: [] }, {}]) {
      await writeFile(file, JSON.stringify({ ...rules, routes, upstreams: { api: upstreams.app } }))
      const { finding } = await examine([...line, '--config', file])
      expect(finding('rules')).toMatchObject({ status: 'failed', found: expect.stringContaining('/routes/0/upstream') })
    }
  })

  it('takes them from the configuration file as well, after flags and variables', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-doctor-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const [port, other, redisPort] = [await freePort(), await freePort(), await freePort()]
    const file = join(folder, 'sluice.yaml')
    const settings = { port, dataDir: join(folder, 'data'), redisUrl: `redis://127.0.0.1:${redisPort}` }
    await writeFile(file, JSON.stringify({ service: settings }))
    const env = { SLUICE_CONFIG: file }
    const { outcome, finding } = await examine(['doctor'], { env })
    expect(finding('port')?.found).toBe(`${port} on 127.0.0.1 is free`)
    expect(finding('data folder')?.found).toContain(join(folder, 'data'))
    expect(finding('redis')).toMatchObject({ status: 'failed', found: expect.stringContaining('ECONNREFUSED') })
    expect(finding('service')?.found).toContain(`http://127.0.0.1:${port} `)
    expect(outcome.code).toBe(1)
    const nearer = await examine(['doctor', '--config', file, '--port', String(other)], { env: { PORT: String(port) } })
    expect(nearer.finding('port')?.found).toBe(`${other} on 127.0.0.1 is free`)
  })

  it.each([
    ['a variable', { PORT: 'http' }, 'PORT="http"'],
    ['a file that is not there', { SLUICE_CONFIG: '/nowhere/sluice.yaml' }, '/nowhere/sluice.yaml'],
    ['a secret', { REDIS_URL: 'hunter2' }, 'REDIS_URL=(hidden)'],
  ])('fails on a setting that the service would reject: %s', async (_, env, found) => {
    const url = `http://127.0.0.1:${await freePort()}`
    const { outcome, finding } = await examine(['doctor', '--url', url], { env })
    expect(finding('settings')).toMatchObject({ status: 'failed', found: expect.stringContaining(found) })
    expect(finding('service')?.found).toContain(url)
    expect(outcome.out).not.toContain('hunter2')
    expect(outcome.code).toBe(1)
  })

  it('fails on a database that is none', async () => {
    const line = await bare()
    const folder = line.at(-1)!
    await mkdir(folder)
    await writeFile(join(folder, 'config.db'), 'this is no database, and long enough to be seen as one'.repeat(20))
    const { outcome, finding } = await examine(line)
    expect(finding('database')).toMatchObject({ status: 'failed', found: expect.stringContaining('cannot be read') })
    expect(outcome.code).toBe(1)
  })
})

describe('with Redis', () => {
  let server: RedisServer

  beforeAll(async () => {
    server = await startRedis({ config: { maxmemory: '100mb', 'maxmemory-policy': 'noeviction' } })
  })

  afterAll(() => server.close())

  it('finds one that is fit for limits', async () => {
    const { outcome, finding } = await examine([...(await bare()), '--redis-url', server.url])
    expect(finding('redis')).toMatchObject({ status: 'ok', found: expect.stringMatching(/^(?:Redis|Valkey) \d+\.\d+/) })
    expect(finding('redis role')).toMatchObject({ status: 'ok', found: 'master' })
    expect(finding('redis eviction')).toMatchObject({ status: 'ok', found: 'noeviction' })
    expect(finding('redis clock')).toMatchObject({ status: 'ok', found: expect.stringMatching(/^0 ms /) })
    expect(outcome.code).toBe(0)
  })

  it('finds one that may evict counters', async () => {
    onTestFinished(() => void server.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction', 'maxmemory', '100mb'))
    await server.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
    const { outcome, finding } = await examine([...(await bare()), '--redis-url', server.url])
    expect(finding('redis eviction')).toMatchObject({
      status: 'failed',
      found: 'allkeys-lru',
      advice: expect.stringContaining('noeviction'),
    })
    expect(outcome.code).toBe(1)
    await server.command('CONFIG', 'SET', 'maxmemory', '0')
    const roomy = await examine([...(await bare()), '--redis-url', server.url])
    expect(roomy.finding('redis eviction')).toMatchObject({ status: 'warning' })
    expect(roomy.outcome.code).toBe(0)
  })

  it('finds a clock that is off', async () => {
    const hourOff = { nowMs: () => Date.UTC(2020, 0, 1) }
    const { outcome, finding } = await examine([...(await bare()), '--redis-url', server.url], hourOff)
    expect(finding('redis clock')).toMatchObject({
      status: 'failed',
      found: expect.stringMatching(/^\d{9,} ms ahead of this machine/),
      advice: expect.stringContaining('time servers'),
    })
    expect(outcome.code).toBe(1)
  })

  it('finds a replica, a wrong password and a server that hangs', async () => {
    const replica = await startRedis({ config: { replicaof: `127.0.0.1 ${server.port}` } })
    onTestFinished(() => replica.close())
    const two = await examine([...(await bare()), '--redis-url', `${server.url},${replica.url}`])
    const roles = two.outcome.json<{ findings: Finding[] }>().findings.filter(({ check }) => check === 'redis role')
    expect(roles.map(({ status }) => status)).toEqual(['ok', 'failed'])
    const wrong = server.url.replace('redis://', 'redis://stranger:hunter2@')
    const rejected = await examine([...(await bare()), '--redis-url', wrong])
    expect(rejected.finding('redis')).toMatchObject({ status: 'failed', found: expect.stringContaining('WRONGPASS') })
    expect(rejected.outcome.out).not.toContain('hunter2')
    replica.pause()
    const hangs = await examine([...(await bare()), '--redis-url', replica.url], { wait: () => Promise.resolve() })
    expect(hangs.finding('redis')).toMatchObject({
      status: 'failed',
      found: expect.stringContaining('no answer within'),
    })
    replica.resume()
  })
})

describe('with sentinels of Redis', () => {
  let group: SentinelGroup

  beforeAll(async () => {
    group = await startSentinel()
  })

  afterAll(() => group.close())

  it('looks at the server that they name', async () => {
    const urls = group.sentinels.map(({ url }) => url).join(',')
    const env = { SLUICE_REDIS_SENTINEL: group.masterName }
    const { outcome, finding } = await examine([...(await bare()), '--redis-url', urls], { env })
    const place = `127.0.0.1:${group.primary.port}`
    expect(finding('redis sentinel')).toMatchObject({ status: 'ok', found: expect.stringContaining(`at ${place}`) })
    expect(finding('redis')).toMatchObject({ status: 'ok', found: expect.stringContaining(place) })
    expect(finding('redis role')).toMatchObject({ status: 'ok', found: 'master' })
    expect(outcome.code).toBe(0)
  })

  it('continues without an unreachable sentinel, and fails when none knows the server', async () => {
    const [known] = group.sentinels
    const away = `redis://127.0.0.1:${await freePort()}`
    const line = [...(await bare()), '--redis-url', `${away},${known!.url}`]
    const one = await examine([...line, '--redis-sentinel', group.masterName])
    expect(one.finding('redis sentinel')).toMatchObject({ status: 'warning' })
    expect([one.finding('redis')?.status, one.outcome.code]).toEqual(['ok', 0])
    const none = await examine([...line, '--redis-sentinel', 'another'])
    expect(none.outcome.out).toContain('does not know another')
    expect([none.finding('redis'), none.outcome.code]).toEqual([undefined, 1])
  })
})

describe('with a cluster of Redis', () => {
  let cluster: RedisCluster

  beforeAll(async () => {
    cluster = await startRedisCluster()
  })

  afterAll(() => cluster.close())

  it('looks at each node, and wants to be told that it is one', async () => {
    const line = [...(await bare()), '--redis-url', cluster.urls.join(',')]
    const { outcome, finding } = await examine(line, { env: { SLUICE_REDIS_CLUSTER: 'true' } })
    expect(finding('redis role')).toMatchObject({ status: 'ok', found: 'node of a cluster' })
    expect(outcome.code).toBe(0)
    const untold = await examine(line)
    expect(untold.finding('redis role')).toMatchObject({
      status: 'failed',
      advice: expect.stringContaining('--redis-cluster'),
    })
  })

  it('finds a server that is none of it', async () => {
    const alone = await startRedis()
    onTestFinished(() => alone.close())
    const { finding } = await examine([...(await bare()), '--redis-url', alone.url, '--redis-cluster'])
    expect(finding('redis role')).toMatchObject({ status: 'failed', found: 'not a node of a cluster' })
  })
})

describe('with PostgreSQL', () => {
  let server: PostgresServer

  beforeAll(async () => {
    server = await startPostgres({ password: 'hunter2' })
  })

  afterAll(() => server.close())

  it('finds an empty one, then one whose tables the service has made', async () => {
    const { url } = await server.createDatabase()
    const empty = await examine([...(await bare()), '--database-url', url])
    expect(empty.finding('database')).toMatchObject({
      status: 'ok',
      found: expect.stringMatching(/^PostgreSQL \d+ at /),
    })
    expect(empty.finding('database tables')).toMatchObject({ status: 'warning', found: 'no tables yet' })
    expect(empty.outcome.code).toBe(0)
    const service = await startServiceProcess('--database-url', url)
    onTestFinished(() => service.close())
    const { outcome, finding } = await examine([...(await bare()), '--database-url', url])
    expect(finding('database tables')).toMatchObject({ status: 'ok', found: expect.stringContaining('the newest') })
    expect(finding('database clock')).toMatchObject({ status: 'ok' })
    expect(outcome.out).not.toContain('hunter2')
    expect(outcome.code).toBe(0)
  })

  it('finds a wrong password, and a server that hangs', async () => {
    const wrong = await examine([...(await bare()), '--database-url', server.url.replace('hunter2', 'hunter3')])
    expect(wrong.finding('database')).toMatchObject({
      status: 'failed',
      found: expect.stringContaining('password authentication failed'),
    })
    expect(wrong.outcome.out).not.toContain('hunter3')
    const hangs = await examine([...(await bare()), '--database-url', server.url], { wait: () => Promise.resolve() })
    expect(hangs.outcome.out).toContain('no answer within')
    expect(hangs.outcome.code).toBe(1)
  })
})

describe('with a service', () => {
  let service: ServiceProcess

  beforeAll(async () => {
    service = await startServiceProcess()
  })

  afterAll(() => service.close())

  const line = (): readonly string[] => [
    'doctor',
    ...['--url', service.url, '--port', String(service.port), '--data-dir', service.dataDir],
  ]

  it('finds all of it in order', async () => {
    const { outcome, finding } = await examine([...line(), '--key', service.adminKey])
    expect(finding('port')?.found).toBe(`${service.port} on 127.0.0.1 is in use by the service`)
    expect(finding('data folder')).toMatchObject({ found: expect.stringMatching(/, in use by process \d+/) })
    expect(finding('database')).toMatchObject({ status: 'ok', found: expect.stringContaining('the newest') })
    expect(finding('service')).toMatchObject({ status: 'ok', found: expect.stringContaining('is ready') })
    expect(finding('service clock')).toMatchObject({ status: 'ok' })
    expect(finding('api key')).toMatchObject({ status: 'ok' })
    expect(outcome.code).toBe(0)
  })

  it('finds it where the settings say that it listens', async () => {
    const env = { PORT: String(service.port), SLUICE_DATA_DIR: service.dataDir }
    const { outcome, finding } = await examine(['doctor'], { env })
    expect(finding('port')?.found).toBe(`${service.port} on 127.0.0.1 is in use by the service`)
    expect(finding('service')).toMatchObject({ status: 'ok', found: expect.stringContaining(service.url) })
    expect(outcome.code).toBe(0)
  })

  it('finds a key that is not accepted, and says nothing without one', async () => {
    const none = await examine(line())
    expect(none.finding('api key')).toMatchObject({ status: 'skipped' })
    const wrong = 'slk_4f9d1c_notavalidsecret'
    const { outcome, finding } = await examine([...line(), '--key', wrong])
    expect(finding('api key')).toMatchObject({ status: 'failed', found: expect.stringContaining('UNAUTHORIZED') })
    expect(outcome.out).not.toContain(wrong)
    expect(outcome.code).toBe(1)
  })
})

describe('with a service that cannot reach its Redis', () => {
  it('fails and says what it means, although the service answers', async () => {
    const redisPort = await freePort()
    const service = await startServiceProcess('--redis-url', `redis://:hunter2@127.0.0.1:${redisPort}`)
    onTestFinished(() => service.close())
    const { outcome, finding } = await examine(['doctor', '--url', service.url, '--port', String(service.port)])
    expect(finding('service')).toMatchObject({ status: 'warning', found: expect.stringContaining('is degraded') })
    expect(finding('redis-unreachable')).toMatchObject({
      status: 'failed',
      found: expect.stringContaining(`Redis at redis://127.0.0.1:${redisPort} `),
      advice: expect.stringMatching(/every check is allowed\. Check REDIS_URL/),
    })
    expect(outcome.out).not.toContain('hunter2')
    expect(outcome.code).toBe(1)
    const env = { SLUICE_API_KEY: service.adminKey }
    const top = await cliRunner({ env })('top', '--url', service.url, '--count', '1')
    expect(top.out).toMatch(/ {2}DEGRADED redis-unreachable\n$/)
    const drawn = await cliRunner({ env, isTty: true, columns: 80, rows: 20 })(
      'top',
      '--url',
      service.url,
      '--count',
      '1',
    )
    expect(drawn.out).toContain('\n\u001B[31mDEGRADED: Redis at redis://127.0.0.1:')
  })
})
