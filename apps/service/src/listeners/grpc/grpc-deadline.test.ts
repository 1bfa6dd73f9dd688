// Calls while Redis does not answer. Other checks may wait for minutes here: what ends a call is its own deadline.
import { connect } from 'node:http2'
import { FaultyProxy, startRedis } from '@sluice/testing/servers'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { startRealService } from '../../service.fixture.ts'
import type { RedisSettings, Settings } from '../../settings/settings.ts'
import type { GrpcClient } from './grpc-client.test.support.ts'
import { failure, SHOULD_RATE_LIMIT } from './grpc-client.test.support.ts'
import { clientOf, enforceShop, GRPC, of, shop, startShop } from './grpc-node.test.support.ts'
import { peerBytes } from './protobuf-peer.test.support.ts'

const redis = await startRedis()
afterAll(() => redis.close())

let prefixes = 0

/** A Redis that answers until the test says otherwise, and whose other checks wait for it. */
async function slowRedis(
  failureMode: RedisSettings['failureMode'],
): Promise<{ readonly proxy: FaultyProxy; readonly settings: Partial<Settings> }> {
  const proxy = await FaultyProxy.start({ port: redis.port })
  onTestFinished(() => proxy.close())
  prefixes++
  const urls = [`redis://127.0.0.1:${proxy.port}`]
  const common = { isCluster: false, sentinel: undefined, leases: false, deadlineMs: 60_000 }
  return { proxy, settings: { redis: { ...common, urls, prefix: `deadline-${prefixes}`, failureMode } } }
}

/** A slow machine may need more than one call: each has 15 ms. */
async function untilRedisAnswers(client: GrpcClient): Promise<void> {
  const answer = (): Promise<unknown> => failure(client.ask(shop('batch=x')))
  await expect.poll(answer, { timeout: 20_000 }).toMatchObject({ message: expect.stringContaining('limitRemaining') })
}

const REFUND = shop(of('user=ann', { isNegativeHits: true }))

describe('a call while Redis hangs', () => {
  it.each([
    ['open', 'OK'],
    ['closed', 'OVER_LIMIT'],
  ] as const)('is decided by the failure mode %s, while other checks wait', async (failureMode, code) => {
    const { proxy, settings } = await slowRedis(failureMode)
    const node = await startRealService({ ...GRPC, ...settings })
    onTestFinished(() => node.stop())
    await enforceShop(node)
    const client = clientOf(node)
    await untilRedisAnswers(client)
    await proxy.blackHole()
    let isChecked = false
    const check = node.check({ user: 'ann', resource: '/' }).then(async (answer) => {
      isChecked = true
      await answer.body?.cancel()
    })
    for (let call = 0; call < 3; call++) {
      const { overallCode, statuses } = await client.ask(shop('user=ann', 'nothing=here'))
      expect([overallCode, ...statuses.map((status) => status.code)]).toEqual([code, code, 'OK'])
    }
    expect(isChecked).toBe(false)
    await proxy.passThrough()
    await check
    // Calls go to Redis again as soon as it answers.
    await untilRedisAnswers(client)
    expect(node.errors).toEqual([])
  })

  it.each(['open', 'closed', 'local'] as const)(
    'is UNAVAILABLE where the settings leave it to Envoy, whatever the failure mode: %s',
    async (failureMode) => {
      const { proxy, settings } = await slowRedis(failureMode)
      const { node, client } = await startShop({
        ...settings,
        grpc: { port: 0, tls: undefined, deadlineMs: 15, storeFailure: 'error' },
      })
      onTestFinished(() => proxy.passThrough())
      const unlimited = { overallCode: 'OK', statuses: [{ code: 'OK', limitRemaining: 4_294_967_295 }] }
      await untilRedisAnswers(client)
      await proxy.blackHole()
      expect(await client.failureOf(shop('user=ann'))).toEqual({
        status: 'UNAVAILABLE',
        message: expect.stringContaining('did not answer in time'),
      })
      // Nobody needs Redis for these.
      expect(await client.ask(shop('user=staff'))).toEqual(unlimited)
      expect(node.errors).toEqual([])
    },
  )

  it('that gives units back ends with UNAVAILABLE after deadline and margin, and stays in flight', async () => {
    const { proxy, settings } = await slowRedis('open')
    const { node, client } = await startShop({ ...settings, maxInFlight: 1 })
    onTestFinished(() => proxy.passThrough())
    await client.ask(shop('user=ann'))
    await proxy.blackHole()
    let isEnded = false
    const failed = client.failureOf(REFUND).finally(() => {
      isEnded = true
    })
    await node.endWaits(17)
    // The listener answers calls in their order: had the first one ended, its answer would have come before this one.
    expect(await client.failureOf(shop('user=bob'))).toEqual({
      status: 'UNAVAILABLE',
      message: expect.stringContaining('Too many calls are in flight'),
    })
    expect(isEnded).toBe(false)
    await node.endWaits(2)
    expect(await failed).toEqual({ status: 'UNAVAILABLE', message: expect.stringContaining('did not answer in time') })
    // Nobody waits for it any more, but Redis may still answer: it is bounded all the same.
    expect((await client.failureOf(shop('user=bob'))).message).toContain('Too many calls are in flight')
    expect(node.errors).toEqual([])
  })

  it('whose client waits for less ends with DEADLINE_EXCEEDED by then', async () => {
    const { proxy, settings } = await slowRedis('open')
    const { node } = await startShop(settings)
    onTestFinished(() => proxy.passThrough())
    await proxy.blackHole()
    const session = connect(`http://127.0.0.1:${node.grpcPort}`)
    onTestFinished(() => session.destroy())
    const stream = session.request({
      ':method': 'POST',
      ':path': SHOULD_RATE_LIMIT,
      'content-type': 'application/grpc',
      'grpc-timeout': '5m',
    })
    const answered = new Promise<Readonly<Record<string, unknown>>>((resolve) => stream.once('response', resolve))
    const message = peerBytes('RateLimitRequest', REFUND)
    stream.end(Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]))
    await node.endWaits(5)
    expect((await answered)['grpc-status']).toBe('4')
  })
})
