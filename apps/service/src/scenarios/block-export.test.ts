import { createHmac } from 'node:crypto'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Receiver, status } from '../alerts/alerts.test.support.ts'
import type { RunningService } from '../service.fixture.ts'
import { START_MS, startService } from '../service.fixture.ts'
import type { Settings } from '../settings/settings.ts'

// The export of blocked addresses for a firewall.

const HOUR_MS = 3_600_000
const KEY = Buffer.alloc(32, 7)
const SECRET = `whsec_${KEY.toString('base64')}`
const LOGIN = {
  resource: '/login',
  rules: [{ dimension: 'ip', limit: 1, window: '1m', penalty: { after: 2, within: '1m', block: '1h' } }],
}

async function start(settings: Partial<Settings> = {}): Promise<RunningService> {
  const service = await startService(settings)
  onTestFinished(() => service.stop())
  expect((await service.admin('PUT', '/admin/ratelimits', { body: LOGIN })).status).toBe(200)
  return service
}

/** Calls until the penalty of the rule blocks the address: one call that is allowed, and two that are not. */
async function provoke(service: RunningService, ip: string): Promise<void> {
  for (let call = 0; call < 3; call++) await service.check({ ip, resource: '/login' })
}

/** The list, and its tag. */
async function feedOf(
  service: RunningService,
  ifNoneMatch?: string,
): Promise<{ readonly status: number; readonly lines: readonly string[]; readonly etag: string | null }> {
  const response = await fetch(`${service.origin}/admin/blocks.txt`, {
    headers: {
      Authorization: `Bearer ${service.adminKey}`,
      ...(ifNoneMatch === undefined ? {} : { 'If-None-Match': ifNoneMatch }),
    },
  })
  const text = await response.text()
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return { status: response.status, lines, etag: response.headers.get('etag') }
}

const UNTIL = new Date(START_MS + HOUR_MS).toISOString()

it('counts blocks by what set them', async () => {
  const service = await start()
  await provoke(service, '192.0.2.7')
  const body = { dimension: 'user', entity: 'u1', duration: '2h' }
  for (let put = 0; put < 2; put++) expect((await service.admin('PUT', '/admin/blocks', { body })).status).toBe(200)
  const page = await (await fetch(`${service.origin}/metrics`)).text()
  expect(
    page
      .split('\n')
      .filter((line) => line.startsWith('ratelimit_blocks_total'))
      .sort(),
  ).toEqual([
    'ratelimit_blocks_total{dimension="ip",origin="penalty"} 1',
    'ratelimit_blocks_total{dimension="user",origin="set"} 2',
  ])
})

describe('the list of blocked addresses', () => {
  it('has what penalties and people blocked, as networks with their expiry, and nothing else', async () => {
    const service = await start()
    await provoke(service, '192.0.2.7')
    await provoke(service, '2001:db8::5')
    const blocks = [
      { dimension: 'ip', entity: '198.51.100.1', duration: '2h' },
      { dimension: 'user', entity: '203.0.113.9', duration: '2h' },
      { dimension: 'ip', entity: 'not-an-address', duration: '2h' },
    ]
    for (const body of blocks) expect((await service.admin('PUT', '/admin/blocks', { body })).status).toBe(200)
    await expect
      .poll(async () => (await feedOf(service)).lines)
      .toEqual([
        `192.0.2.7/32 # expires=${UNTIL}`,
        `198.51.100.1/32 # expires=${new Date(START_MS + 2 * HOUR_MS).toISOString()}`,
        `2001:db8::/64 # expires=${UNTIL}`,
      ])
  })

  it('is text, and is not sent again while nothing changes', async () => {
    const service = await start()
    const block = (entity: string): Promise<Response> =>
      service.admin('PUT', '/admin/blocks', { body: { dimension: 'ip', entity, duration: '1h' } })
    await block('192.0.2.7')
    const response = await service.admin('GET', '/admin/blocks.txt')
    expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8')
    expect(response.headers.get('cache-control')).toBe('private, no-cache')
    const first = await feedOf(service)
    expect(first).toMatchObject({ status: 200, etag: response.headers.get('etag') })
    for (const tag of [first.etag!, `W/${first.etag}`, `"other", ${first.etag}`, '*']) {
      expect(await feedOf(service, tag)).toEqual({ status: 304, lines: [], etag: first.etag })
    }
    await block('192.0.2.8')
    const second = await feedOf(service, first.etag!)
    expect([second.status, second.lines.length]).toEqual([200, 2])
    expect((await service.admin('DELETE', '/admin/blocks?dimension=ip&entity=192.0.2.8')).status).toBe(204)
    expect(await feedOf(service, second.etag!)).toEqual({ ...first, status: 200 })
  })

  it('does not have a block that has expired', async () => {
    const service = await start()
    await service.admin('PUT', '/admin/blocks', { body: { dimension: 'ip', entity: '192.0.2.7', duration: '1h' } })
    const before = await feedOf(service)
    expect(before.lines).toHaveLength(1)
    service.advance(HOUR_MS * 1000)
    const after = await feedOf(service, before.etag!)
    expect([after.status, after.lines]).toEqual([200, []])
  })

  it('has more than one page of entries', async () => {
    const service = await start()
    const addresses = Array.from({ length: 1005 }, (_, index) => `10.0.${index >> 8}.${index & 255}`)
    for (const entity of addresses) {
      await service.admin('PUT', '/admin/blocks', { body: { dimension: 'ip', entity, duration: '1h' } })
    }
    const { lines } = await feedOf(service)
    expect(new Set(lines.map((line) => line.split(' ')[0]))).toEqual(new Set(addresses.map((each) => `${each}/32`)))
    expect(lines).toHaveLength(1005)
  })

  it('asks for a key', async () => {
    const service = await start()
    expect((await fetch(`${service.origin}/admin/blocks.txt`)).status).toBe(401)
  })
})

describe('the webhook of blocks', () => {
  it('says which network is blocked by whom and until when, signed as Standard Webhooks says', async () => {
    const receiver = await Receiver.start(status(204))
    const service = await start({
      blockWebhooks: [receiver.origin],
      webhooks: { secrets: [SECRET], deniedTargets: [] },
    })
    await provoke(service, '2001:db8::5')
    await receiver.untilPosts(1)
    const { headers, body } = receiver.posts[0]!
    expect(JSON.parse(body)).toEqual({
      type: 'block.created',
      timestamp: new Date(START_MS).toISOString(),
      data: { cidr: '2001:db8::/64', expiresAt: UNTIL, strikes: 1, rule: '/login@ip' },
    })
    const id = headers['webhook-id'] as string
    const timestamp = headers['webhook-timestamp'] as string
    const signature = createHmac('sha256', KEY).update(`${id}.${timestamp}.${body}`).digest('base64')
    expect(headers['webhook-signature']).toBe(`v1,${signature}`)
    expect(Number(timestamp)).toBe(START_MS / 1000)
  })

  it('reports blocks that operators set and lift, once each, and only for addresses', async () => {
    const receiver = await Receiver.start(status(204))
    const service = await start({ blockWebhooks: [receiver.origin] })
    const user = { dimension: 'user', entity: 'u1', duration: '1h' }
    const address = { dimension: 'ip', entity: '192.0.2.7', duration: '1h', reason: 'abuse report 4711' }
    await service.admin('PUT', '/admin/blocks', { body: user })
    await service.admin('DELETE', '/admin/blocks?dimension=user&entity=u1')
    await service.admin('PUT', '/admin/blocks', { body: address })
    await receiver.untilPosts(1)
    await service.admin('DELETE', '/admin/blocks?dimension=ip&entity=192.0.2.7')
    await receiver.untilPosts(2)
    expect(receiver.posts.map(({ body }) => JSON.parse(body))).toMatchObject([
      {
        type: 'block.created',
        data: { cidr: '192.0.2.7/32', expiresAt: UNTIL, strikes: 1, reason: 'abuse report 4711' },
      },
      { type: 'block.lifted', data: { cidr: '192.0.2.7/32' } },
    ])
    expect(new Set(receiver.posts.map(({ headers }) => headers['webhook-id'])).size).toBe(2)
  })

  it('is listed with what could not be delivered, and sent again on request', async () => {
    const receiver = await Receiver.start(status(400))
    const service = await start({ blockWebhooks: [receiver.origin] })
    await provoke(service, '192.0.2.7')
    await receiver.untilPosts(1)
    const letters = async (): Promise<readonly { id: string }[]> => {
      const response = await service.admin('GET', '/admin/alerts/dead-letters')
      return ((await response.json()) as { items: readonly { id: string }[] }).items
    }
    await expect.poll(letters).toMatchObject([{ cidr: '192.0.2.7/32', error: 'answered with status 400', attempts: 1 }])
    receiver.answerWith(status(204))
    const [letter] = await letters()
    expect((await service.admin('POST', `/admin/alerts/dead-letters/${letter!.id}/retry`)).status).toBe(202)
    await receiver.untilPosts(2)
    expect(receiver.posts[1]!.body).toBe(receiver.posts[0]!.body)
    await expect.poll(letters).toEqual([])
  })

  it('comes once from a service with several threads', async () => {
    const receiver = await Receiver.start(status(204))
    const service = await start({ blockWebhooks: [receiver.origin], threads: 2 })
    const body = { dimension: 'ip', entity: '192.0.2.7', duration: '1h' }
    await service.admin('PUT', '/admin/blocks', { body })
    await receiver.untilPosts(1)
    await service.admin('PUT', '/admin/blocks', { body: { ...body, entity: '192.0.2.8' } })
    await receiver.untilPosts(2)
    expect(receiver.posts.map(({ body: text }) => JSON.parse(text).data.cidr)).toEqual(['192.0.2.7/32', '192.0.2.8/32'])
  })
})
