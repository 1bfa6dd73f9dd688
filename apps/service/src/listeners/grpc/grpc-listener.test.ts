import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { credentials } from '@grpc/grpc-js'
import { freePort, makeCertificate } from '@sluice/testing/servers'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RunningNode } from '../../service.fixture.ts'
import { startRealService, startService } from '../../service.fixture.ts'
import type { RedisSettings, Settings } from '../../settings/settings.ts'
import type { GrpcAnswer } from './grpc-client.test.support.ts'
import { failure } from './grpc-client.test.support.ts'
import { clientOf, enforceShop, GRPC, of, shop, startShop } from './grpc-node.test.support.ts'

const codes = ({ overallCode, statuses }: GrpcAnswer): readonly string[] => [
  overallCode,
  ...statuses.map(({ code }) => code),
]

async function startReal(settings: Partial<Settings>): Promise<RunningNode> {
  const node = await startRealService({ ...GRPC, ...settings })
  onTestFinished(() => node.stop())
  await enforceShop(node)
  return node
}

describe('a call of ShouldRateLimit', () => {
  it('is answered with a status for each descriptor, and headers for the response', async () => {
    const { client } = await startShop()
    const { responseHeadersToAdd, ...answer } = await client.ask(shop('user=ann', 'other', 'user=staff'))
    expect(answer).toEqual({
      overallCode: 'OK',
      statuses: [
        {
          code: 'OK',
          currentLimit: { requestsPerUnit: 3, unit: 'MINUTE', name: 'users' },
          limitRemaining: 2,
          durationUntilReset: '45s',
        },
        { code: 'OK' },
        { code: 'OK', limitRemaining: 4_294_967_295 },
      ],
    })
    expect(responseHeadersToAdd).toEqual([
      { key: 'X-RateLimit-Limit', value: '3' },
      { key: 'X-RateLimit-Remaining', value: '2' },
      { key: 'X-RateLimit-Reset', value: '1699180800' },
      { key: 'X-RateLimit-Reset-After', value: '45' },
    ])
  })

  it('is denied from the limit on, with the time to wait, until the window ends', async () => {
    const { node, client } = await startShop()
    for (let call = 0; call < 3; call++) expect((await client.ask(shop('user=ann'))).overallCode).toBe('OK')
    const { responseHeadersToAdd, ...denied } = await client.ask(shop('user=ann'))
    const currentLimit = { requestsPerUnit: 3, unit: 'MINUTE', name: 'users' }
    const statuses = [{ code: 'OVER_LIMIT', currentLimit, durationUntilReset: '45s' }]
    expect(denied).toEqual({ overallCode: 'OVER_LIMIT', statuses })
    expect(responseHeadersToAdd).toContainEqual({ key: 'Retry-After', value: '45' })
    node.advance(45_000_000)
    expect((await client.ask(shop('user=ann'))).overallCode).toBe('OK')
  })

  it('is charged for all descriptors or for none', async () => {
    const { client } = await startShop()
    expect(codes(await client.ask(shop('user=ann', 'ip=1')))).toEqual(['OK', 'OK', 'OK'])
    expect(codes(await client.ask(shop('user=ann', 'ip=1')))).toEqual(['OVER_LIMIT', 'OK', 'OVER_LIMIT'])
    const { statuses } = await client.ask(shop(of('user=ann', { hitsAddend: { value: 0n } })))
    expect(statuses[0]?.limitRemaining).toBe(2)
  })

  it('takes hits, of the request and of descriptors, and gives them back', async () => {
    const { client } = await startShop()
    const left = async (request: object): Promise<readonly unknown[]> =>
      (await client.ask(request)).statuses.map(({ limitRemaining = 0 }) => limitRemaining)
    const three = { ...shop('batch=a', of('batch=b', { hitsAddend: { value: 5n } })), hitsAddend: 3 }
    expect(await left(three)).toEqual([997, 995])
    expect(await left({ ...shop('batch=a'), hitsAddend: 0 })).toEqual([996])
    const back = (more: object = {}): object => shop(of('batch=a', { isNegativeHits: true, ...more }))
    expect(await left(back({ hitsAddend: { value: 2n } }))).toEqual([998])
    expect(await left({ ...back(), hitsAddend: 100 })).toEqual([1000])
    expect(await left(back())).toEqual([1000])
  })

  it('limits nothing in an unknown domain, at another depth, in shadow, or where a limit is replaced', async () => {
    const { client } = await startShop()
    const unlimited = [shop('route=/orders/1'), shop('route=/orders/1 user=a more=b'), shop('nothing')]
    const override = of('user=bad', { limit: { requestsPerUnit: 0, unit: 1 } })
    for (const request of [...unlimited, { domain: 'mail', descriptors: [override] }])
      expect(await client.ask(request)).toEqual({ overallCode: 'OK', statuses: [{ code: 'OK' }] })
    for (let call = 0; call < 3; call++) expect(codes(await client.ask(shop('tried')))).toEqual(['OK', 'OK'])
    const replaced = await client.ask(shop('user=ann', 'plan=gold'))
    expect(replaced.statuses.map(({ limitRemaining }) => limitRemaining)).toEqual([undefined, 4])
  })

  it('says which quotas are used up, with the metadata of the others for the next filters', async () => {
    const { client } = await startShop()
    const answers = [1, 2, 3].map(() => client.ask(shop('pool=one', 'pool=two')))
    const [first, second, third] = await Promise.all(answers)
    expect([first, second, third].map((answer) => codes(answer!))).toEqual([
      ['OK', 'OK', 'OK'],
      ['OK', 'OVER_LIMIT', 'OK'],
      ['OVER_LIMIT', 'OVER_LIMIT', 'OVER_LIMIT'],
    ])
    const asked = { domain: 'shop', descriptors: [{ entries: ['pool=one'] }, { entries: ['pool=two'] }] }
    const fallback = { cluster: 'two' }
    expect([first, second, third].map((answer) => answer!.dynamicMetadata)).toEqual([
      { ...asked, metadata: { cluster: 'one', weight: 0.5, spare: false, note: '', zones: ['a', null], fallback } },
      { ...asked, metadata: { fallback } },
      undefined,
    ])
  })

  it('uses the limit that a descriptor brings along', async () => {
    const { client } = await startShop()
    const one = shop(of('own', { limit: { requestsPerUnit: 1, unit: 3 } }))
    expect(codes(await client.ask(one))).toEqual(['OK', 'OK'])
    expect(codes(await client.ask(one))).toEqual(['OVER_LIMIT', 'OVER_LIMIT'])
    expect(codes(await client.ask(shop(of('own', { limit: { unit: 7 } }))))[0]).toBe('OVER_LIMIT')
  })

  it('after the response takes what is left where a limit drains, so that the next request is denied', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-drain-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const rulesFile = join(folder, 'sluice.yaml')
    const limit = '{ unit: year, requestsPerUnit: 1000, drain: true }'
    writeFileSync(
      rulesFile,
      `rules: []\ndomains: [{ domain: models, descriptors: [{ key: api_key, limit: ${limit} }] }]\n`,
    )
    const node = await startService({ ...GRPC, rulesFile })
    onTestFinished(() => node.stop())
    const client = clientOf(node)
    const ask = async (hits: number): Promise<readonly unknown[]> => {
      const descriptors = [of('api_key=k', { hitsAddend: { value: BigInt(hits) } })]
      const { overallCode, statuses } = await client.ask({ domain: 'models', descriptors })
      return [overallCode, statuses[0]?.limitRemaining ?? 0]
    }
    expect(await ask(0)).toEqual(['OK', 1000])
    expect(await ask(900)).toEqual(['OK', 100])
    expect(await ask(0)).toEqual(['OK', 100])
    expect(await ask(300)).toEqual(['OVER_LIMIT', 0])
    expect(await ask(0)).toEqual(['OVER_LIMIT', 0])
  })

  it('gets the answer of POST /json (property)', async () => {
    const [one, other] = [await startShop(), await startShop()]
    const users = ['user=a', 'user=b', 'user=staff', 'user=bad', 'ip=1']
    const text = fc.constantFrom(...users, 'tried', 'plan', 'x', 'batch', 'pool=one', 'pool=two')
    const deep = fc.constantFrom('route=/orders/1 user=a', 'route=/orders/1', 'route=/orders/2 user=a more=b')
    const unit = fc.integer({ min: 1, max: 7 })
    const descriptor = fc.record(
      {
        text: fc.oneof({ weight: 4, arbitrary: text }, deep),
        limit: fc.record({ requestsPerUnit: fc.nat(3), unit }),
        hits: fc.nat(3),
        isNegativeHits: fc.boolean(),
      },
      { requiredKeys: ['text'] },
    )
    const request = fc.record(
      {
        domain: fc.constantFrom('shop', 'shop', 'shop', 'mail'),
        descriptors: fc.array(descriptor, { minLength: 1, maxLength: 4 }),
        hitsAddend: fc.nat(2),
        advanceMs: fc.constantFrom(0, 0, 300, 20_000),
      },
      { requiredKeys: ['domain', 'descriptors', 'advanceMs'] },
    )
    await fc.assert(
      fc.asyncProperty(request, async ({ descriptors, advanceMs, ...rest }) => {
        for (const { node } of [one, other]) node.advance(advanceMs * 1000)
        const asked = descriptors.map(({ text: entries, hits, ...more }) =>
          of(entries, { ...more, ...(hits !== undefined && { hitsAddend: { value: BigInt(hits) } }) }),
        )
        const { responseHeadersToAdd = [], ...answer } = await one.client.ask({ ...rest, descriptors: asked })
        const body = {
          ...rest,
          descriptors: descriptors.map(({ text: entries, hits, limit, ...more }) =>
            of(entries, {
              ...more,
              ...(hits !== undefined && { hitsAddend: hits }),
              ...(limit && { limit: { ...limit, unit: UNITS[limit.unit] } }),
            }),
          ),
        }
        const json = await other.node.admin('POST', '/json', { body })
        expect(answer).toEqual(await json.json())
        expect(json.status).toBe(answer.overallCode === 'OK' ? 200 : 429)
        for (const { key, value } of responseHeadersToAdd) expect([key, json.headers.get(key)]).toEqual([key, value])
        expect(responseHeadersToAdd.some(({ key }) => key === 'Retry-After')).toBe(json.headers.has('Retry-After'))
      }),
      { numRuns: 150 },
    )
  })

  it.each<[string, object, string, RegExp]>([
    ['no domain', { descriptors: [of('user=a')] }, 'INVALID_ARGUMENT', /^domain: received nothing, expected/],
    ['no descriptors', { domain: 'shop' }, 'INVALID_ARGUMENT', /^descriptors: received none, expected/],
    ['no unit', shop(of('user=a', { limit: {} })), 'INVALID_ARGUMENT', /limit\.unit: received 0, expected/],
  ])('with %s is rejected, and counts nothing', async (_, request, status, message) => {
    const { node, client } = await startShop()
    const failed = await client.failureOf(request)
    expect(failed.status).toBe(status)
    expect(failed.message).toMatch(message)
    expect((await client.ask(shop('user=a'))).statuses[0]?.limitRemaining).toBe(2)
    expect(node.errors).toEqual([])
  })

  it('is not answered by rules that are not there yet', async () => {
    const node = await startService({ ...GRPC, databaseUrl: `postgres://127.0.0.1:${await freePort()}/none` })
    onTestFinished(() => node.stop())
    expect(await clientOf(node).failureOf(shop('user=a'))).toEqual({
      status: 'UNAVAILABLE',
      message: expect.stringContaining('has no rules yet'),
    })
  })

  it('beyond the calls in flight is UNAVAILABLE', async () => {
    const { node, client } = await startShop()
    node.setLoopDelay(5000)
    node.advance(10_000_000)
    expect(await client.failureOf(shop('user=a'))).toEqual({
      status: 'UNAVAILABLE',
      message: expect.stringContaining('Too many calls'),
    })
  })

  it('shares its limits with POST /json, to the unit', async () => {
    const { node, client } = await startShop()
    const body = { domain: 'shop', descriptors: [{ entries: [{ key: 'batch', value: 'x' }] }], hitsAddend: 100 }
    const both = Array.from({ length: 20 }, async (_, index) =>
      index % 2 === 0
        ? (await node.admin('POST', '/json', { body })).ok
        : (await client.ask({ ...shop('batch=x'), hitsAddend: 100 })).overallCode === 'OK',
    )
    expect((await Promise.all(both)).filter(Boolean)).toHaveLength(10)
  })

  it('shares its limits between threads', async () => {
    const node = await startReal({ threads: 2 })
    const clients = Array.from({ length: 8 }, () => clientOf(node))
    const answers = clients.flatMap((client) =>
      Array.from({ length: 4 }, () => client.ask({ ...shop('batch=t'), hitsAddend: 100 })),
    )
    expect((await Promise.all(answers)).filter(({ overallCode }) => overallCode === 'OK')).toHaveLength(10)
  })

  it.each([
    ['open', 'OK'],
    ['closed', 'OVER_LIMIT'],
  ] as const)('is decided by the failure mode %s while the store is unavailable', async (failureMode, code) => {
    const redis: RedisSettings = {
      urls: [`redis://127.0.0.1:${await freePort()}`],
      isCluster: false,
      sentinel: undefined,
      prefix: 'sluice',
      leases: false,
      deadlineMs: 50,
      failureMode,
    }
    const client = clientOf(await startReal({ redis }))
    const { overallCode, statuses } = await client.ask(shop('user=a'))
    expect([overallCode, statuses[0]?.code]).toEqual([code, code])
    // A refund cannot be made up.
    expect((await client.failureOf(shop(of('user=a', { isNegativeHits: true })))).status).toBe('UNAVAILABLE')
  })
})

const UNITS = ['', 'SECOND', 'MINUTE', 'HOUR', 'DAY', 'MONTH', 'YEAR', 'WEEK']

describe('access to the gRPC listener', () => {
  it('needs a key where the check API does, except for health', async () => {
    const { node, client } = await startShop({ checkKey: true })
    expect(await client.failureOf(shop('user=a'))).toEqual({
      status: 'UNAUTHENTICATED',
      message: expect.stringContaining('needs an API key'),
    })
    const wrong = clientOf(node, { key: 'slk_aaaaaaaa_bbbb' })
    expect((await wrong.failureOf(shop('user=a'))).status).toBe('UNAUTHENTICATED')
    expect(await client.health()).toEqual({ status: 'SERVING' })
    const right = clientOf(node, { key: node.adminKey! })
    expect((await right.ask(shop('user=a'))).overallCode).toBe('OK')
    expect(await (await fetch(`${node.origin}/readyz`)).text()).toMatch(
      /"listener grpc","ready":true,"detail":"127\.0\.0\.1:\d+; API key needed"/,
    )
  })

  async function certified(hasClientCa: boolean): Promise<{ readonly node: RunningNode; readonly files: Buffer[] }> {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-tls-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const { certificateFile: cert, keyFile: key } = await makeCertificate(folder)
    const tls = { cert, key, clientCa: hasClientCa ? cert : undefined }
    const node = await startReal({ checkKey: true, grpc: { port: 0, tls, deadlineMs: 15 } })
    return { node, files: [readFileSync(cert), readFileSync(key)] }
  }

  it('by TLS needs a key like plain text', async () => {
    const { node, files } = await certified(false)
    const secured = credentials.createSsl(files[0]!)
    expect((await clientOf(node, { credentials: secured }).failureOf(shop('user=a'))).status).toBe('UNAUTHENTICATED')
    const right = clientOf(node, { credentials: secured, key: node.adminKey! })
    expect((await right.ask(shop('user=a'))).overallCode).toBe('OK')
    expect((await clientOf(node).failureOf(shop('user=a'))).status).toBe('UNAVAILABLE')
  })

  it('by client certificates needs one, and no key', async () => {
    const { node, files } = await certified(true)
    const [cert, key] = files as [Buffer, Buffer]
    const known = clientOf(node, { credentials: credentials.createSsl(cert, key, cert) })
    expect((await known.ask(shop('user=a'))).overallCode).toBe('OK')
    const unknown = clientOf(node, { credentials: credentials.createSsl(cert) })
    expect((await unknown.failureOf(shop('user=a'))).status).toBe('UNAVAILABLE')
    expect(await (await fetch(`${node.origin}/readyz`)).text()).toContain('client certificate needed')
  })

  it('ends the start with the setting if a file cannot be read', async () => {
    const tls = { cert: '/nowhere/cert.pem', key: '/nowhere/key.pem', clientCa: undefined }
    await expect(startRealService({ grpc: { port: 0, tls, deadlineMs: 15 } })).rejects.toMatchObject({
      cause: { code: 'SLUICE_SERVICE_INVALID_SETTING' },
    })
  })
})

describe('the gRPC health service', () => {
  it('says whether calls should be sent here', async () => {
    const { client } = await startShop()
    for (const service of ['', 'envoy.service.ratelimit.v3.RateLimitService', 'grpc.health.v1.Health'])
      expect(await client.health(service)).toEqual({ status: 'SERVING' })
    expect((await failure(client.health('other'))).status).toBe('NOT_FOUND')
  })

  it('tells watches of every change, and ends them with the service', async () => {
    const { node, client } = await startShop()
    const [watch, unknown] = [client.watch(), client.watch('other')]
    expect(await watch.next()).toEqual({ status: 'SERVING' })
    expect(await unknown.next()).toEqual({ status: 'SERVICE_UNKNOWN' })
    await node.endWaits(1000)
    const stopped = node.service.stop({ drains: true })
    expect(await watch.next()).toEqual({ status: 'NOT_SERVING' })
    expect(await failure(watch.next())).toEqual({ status: 'UNAVAILABLE', message: 'This node is stopping' })
    expect((await failure(unknown.next())).status).toBe('UNAVAILABLE')
    await stopped
  })
})

describe('a gRPC listener', () => {
  it('is listed in /readyz, in metrics and at the start', async () => {
    const { node, client } = await startShop()
    await client.ask(shop('user=ann'))
    await client.failureOf({ domain: 'shop' })
    const text = await (await fetch(`${node.origin}/readyz`)).text()
    expect(text).toContain(
      `"name":"listener grpc","ready":true,"detail":"127.0.0.1:${node.grpcPort}; no API key needed"`,
    )
    const metrics = await (await fetch(`${node.origin}/metrics`)).text()
    expect(metrics).toContain('sluice_listener_connections{listener="grpc"} 1')
    expect(metrics).toContain('sluice_grpc_calls_total{method="ShouldRateLimit",status="OK"} 1')
    expect(metrics).toContain('sluice_grpc_calls_total{method="ShouldRateLimit",status="INVALID_ARGUMENT"} 1')
    expect(metrics).toContain('sluice_grpc_call_duration_seconds_count{method="ShouldRateLimit"} 2')
  })

  it('answers what it has begun when it stops under load, and sends GOAWAY', async () => {
    const node = await startReal({})
    const clients = Array.from({ length: 8 }, () => clientOf(node))
    let answered = 0
    const busy = clients.map(async (client) => {
      for (;;) {
        const failed = await failure(client.ask(shop('user=staff')).then(() => answered++))
        if (failed.status !== 'OK') return failed
      }
    })
    await expect.poll(() => answered, { timeout: 5000 }).toBeGreaterThan(50)
    await node.service.stop({ drains: true })
    for (const { status } of await Promise.all(busy)) expect(status).toBe('UNAVAILABLE')
    expect(node.errors).toEqual([])
  })

  it('sends GOAWAY when it drains, and answers calls in flight', async () => {
    const { node } = await startShop()
    const session = connect(`http://127.0.0.1:${node.grpcPort}`)
    onTestFinished(() => session.destroy())
    const stream = session.request({
      ':method': 'POST',
      ':path': '/grpc.health.v1.Health/Check',
      'content-type': 'application/grpc',
    })
    await new Promise((resolve) => session.once('remoteSettings', resolve))
    stream.write(Buffer.from([0, 0, 0]))
    await expect.poll(async () => await (await fetch(`${node.origin}/metrics`)).text()).toContain('{listener="grpc"} 1')
    const goaway = new Promise((resolve) => session.once('goaway', resolve))
    const stopped = node.service.stop({ drains: true })
    expect(await goaway).toBe(0)
    stream.end(Buffer.from([0, 0]))
    const trailers = await new Promise<Record<string, unknown>>((resolve) => stream.once('trailers', resolve).resume())
    expect(trailers['grpc-status']).toBe('0')
    await stopped
  })
})
