import { Webhook as StandardWebhook } from 'standardwebhooks'
import { describe, expect, it, vi } from 'vitest'
import type { Reply } from './alerts.test.support.ts'
import { PLAIN_DELIVERY, Receiver, START_MS, status } from './alerts.test.support.ts'
import type { Webhook, WebhookDelivery } from './webhook-request.ts'
import { postWebhook, webhookDelivery, webhooksOf } from './webhook-request.ts'

const BODY = JSON.stringify({ text: 'häßlich ☂' })

const SECRET = `whsec_${Buffer.from('a'.repeat(32)).toString('base64')}`
const OLD_SECRET = `whsec_${Buffer.from('b'.repeat(24)).toString('base64')}`

async function hookTo(
  reply: Reply,
  delivery: WebhookDelivery = PLAIN_DELIVERY,
): Promise<{ receiver: Receiver; webhook: Webhook }> {
  const receiver = await Receiver.start(reply)
  const [webhook] = webhooksOf([`${receiver.origin}/hook/T0KEN?x=1`], delivery)
  return { receiver, webhook: webhook! }
}

function post(webhook: Webhook, { signal = new AbortController().signal, nowMs = START_MS } = {}): Promise<number> {
  return postWebhook(webhook, { id: 'a1_firing', body: BODY, nowMs, signal })
}

/** What the library of Standard Webhooks makes of a post, at this time. */
function verified({ headers, body }: Receiver['posts'][number], secret: string, nowMs = START_MS): unknown {
  vi.useFakeTimers({ now: nowMs, toFake: ['Date'] })
  try {
    return new StandardWebhook(secret).verify(body, headers as Record<string, string>)
  } finally {
    vi.useRealTimers()
  }
}

describe('a post', () => {
  it('is JSON with its id and time, to the whole address, on a connection of its own', async () => {
    const { receiver, webhook } = await hookTo(status(204))
    await post(webhook, { nowMs: 1_700_000_000_999 })
    expect(receiver.posts).toEqual([
      { method: 'POST', path: '/hook/T0KEN?x=1', body: BODY, headers: expect.anything() },
    ])
    const { headers } = receiver.posts[0]!
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(BODY)),
      'webhook-id': 'a1_firing',
      'webhook-timestamp': '1700000000',
      'user-agent': 'sluice',
      connection: 'close',
    })
    expect(headers).not.toHaveProperty('webhook-signature')
  })

  it('is signed so that the library of Standard Webhooks takes it, once, for five minutes', async () => {
    const { receiver, webhook } = await hookTo(status(200), webhookDelivery({ secrets: [SECRET], deniedTargets: [] }))
    await post(webhook)
    const [got] = receiver.posts
    expect(verified(got!, SECRET)).toEqual(JSON.parse(BODY))
    expect(() => verified(got!, OLD_SECRET)).toThrow('No matching signature')
    expect(() => verified({ ...got!, body: BODY.replace('h', 'H') }, SECRET)).toThrow('No matching signature')
    const headers = { ...got!.headers, 'webhook-id': 'a2_firing' }
    expect(() => verified({ ...got!, headers }, SECRET)).toThrow('No matching signature')
    expect(() => verified(got!, SECRET, START_MS + 301_000)).toThrow('too old')
    const later = { ...got!.headers, 'webhook-timestamp': String(Number(got!.headers['webhook-timestamp']) + 300) }
    expect(() => verified({ ...got!, headers: later }, SECRET, START_MS + 301_000)).toThrow('No matching signature')
  })

  it('is signed by each of several secrets, so that one can be replaced', async () => {
    const secrets = [SECRET, OLD_SECRET]
    const { receiver, webhook } = await hookTo(status(200), webhookDelivery({ secrets, deniedTargets: [] }))
    await post(webhook)
    for (const secret of secrets) expect(verified(receiver.posts[0]!, secret)).toEqual(JSON.parse(BODY))
  })

  it.each([200, 201, 202, 204, 299])('is delivered when the answer is %d', async (code) => {
    const { webhook } = await hookTo(status(code))
    await expect(post(webhook)).resolves.toBe(code)
  })

  it.each([
    [500, false],
    [502, false],
    [503, false],
    [404, false],
    [408, false],
    [409, false],
    [425, false],
    [429, false],
    [400, true],
    [401, true],
    [403, true],
    [405, true],
    [410, true],
    [413, true],
    [422, true],
  ])('is not when it is %d, and that is final: %s', async (code, isFinal) => {
    const { webhook } = await hookTo(status(code))
    await expect(post(webhook)).rejects.toMatchObject({ message: `answered with status ${code}`, isFinal })
  })

  it.each([301, 302, 303, 307, 308])('does not follow a %d', async (code) => {
    const { receiver, webhook } = await hookTo((response) =>
      response.writeHead(code, { Location: `${receiver.origin}/elsewhere` }).end(),
    )
    await expect(post(webhook)).rejects.toMatchObject({
      isFinal: true,
      message: expect.stringContaining('redirects are not followed'),
    })
    expect(receiver.posts).toHaveLength(1)
  })

  it.each([
    ['7', 7000],
    ['0', 0],
    ['86400', 600_000],
    ['Wed, 21 Oct 2031 07:28:00 GMT', undefined],
    ['-1', undefined],
  ])('tells the wait that Retry-After: %s asks for, within reason', async (value, retryAfterMs) => {
    const { webhook } = await hookTo(status(503, { 'Retry-After': value }))
    await expect(post(webhook)).rejects.toMatchObject({ retryAfterMs })
  })

  it('reads no more of an answer than it must', async () => {
    let isCut = false
    const { webhook } = await hookTo((response) => {
      response.on('close', () => {
        isCut = !response.writableFinished
      })
      response.writeHead(200)
      const chunk = Buffer.alloc(16_384)
      const pump = (): void => {
        while (!response.destroyed && response.write(chunk));
        response.once('drain', pump)
      }
      pump()
    })
    await expect(post(webhook)).resolves.toBe(200)
    await expect.poll(() => isCut).toBe(true)
  })

  it('fails when the answer breaks off', async () => {
    const { webhook } = await hookTo((response) => {
      response.writeHead(200, { 'Content-Length': '100' })
      response.write('half', () => response.destroy())
    })
    await expect(post(webhook)).rejects.toMatchObject({ message: 'did not respond: ECONNRESET', isFinal: false })
  })

  it('fails when the port is closed, without the address in the message', async () => {
    const { receiver, webhook } = await hookTo(status(200))
    await receiver.stop()
    const error = await post(webhook).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ message: 'did not respond: ECONNREFUSED', isFinal: false })
    expect(JSON.stringify({ ...(error as Error), text: String(error) })).not.toMatch(/127|T0KEN/)
  })

  it('ends with its signal', async () => {
    const { receiver, webhook } = await hookTo(() => undefined)
    const ended = new AbortController()
    const posting = post(webhook, { signal: ended.signal })
    await receiver.untilPosts(1)
    ended.abort(new Error('too slow'))
    await expect(posting).rejects.toThrow('too slow')
  })

  it('ends with its signal in the middle of an answer too', async () => {
    const { receiver, webhook } = await hookTo((response) => response.writeHead(200).write('half'))
    const ended = new AbortController()
    const posting = post(webhook, { signal: ended.signal })
    await receiver.untilPosts(1)
    ended.abort(new Error('too slow'))
    await expect(posting).rejects.toThrow('too slow')
  })

  it('to https is encrypted', async () => {
    const { receiver } = await hookTo(status(200))
    const [webhook] = webhooksOf([receiver.origin.replace('http:', 'https:')], PLAIN_DELIVERY)
    await expect(post(webhook!)).rejects.toMatchObject({
      message: expect.stringMatching(/^did not respond: .*(SSL|EPROTO)/),
    })
    expect(receiver.posts).toEqual([])
  })
})

describe('addresses', () => {
  it('are shown as scheme and host, and named without what is in them', () => {
    const [webhook] = webhooksOf(['https://ops:pass@hooks.example.com:8443/T000/SECRET?token=x'], PLAIN_DELIVERY)
    expect(webhook!.destination).toBe('https://hooks.example.com:8443')
    expect(webhook!.id).toMatch(/^[0-9a-f]{16}$/)
  })

  it('count once each, and have ids that stay', () => {
    const urls = ['http://one.example/a', 'http://one.example/b', 'http://one.example/a']
    const webhooks = webhooksOf(urls, PLAIN_DELIVERY)
    expect(webhooks.map(({ url }) => url.pathname)).toEqual(['/a', '/b'])
    expect(webhooksOf(urls.toReversed(), PLAIN_DELIVERY).map(({ id }) => id)).toEqual(webhooks.map(({ id }) => id))
  })

  it.each(['ftp://hooks.example.com/x', 'file:///etc/passwd', 'javascript:alert(1)', 'hooks.example.com/T0KEN', ''])(
    'that are invalid are rejected without being shown: %s',
    (text) => {
      let message = ''
      try {
        webhooksOf([text], PLAIN_DELIVERY)
      } catch (error) {
        message = String(error)
      }
      expect(message).toContain('SLUICE_SERVICE_INVALID_SETTING')
      expect(message).toContain('expected a URL that begins with http:// or https://')
      expect(message).not.toMatch(/T0KEN|passwd|example/)
    },
  )
})

describe('the deny list', () => {
  const LOCAL = ['127.0.0.0/8', '::1']

  /** A webhook by name, to a receiver of this machine. */
  async function byName(deniedTargets: readonly string[], path = '/'): Promise<[Receiver, Webhook]> {
    const receiver = await Receiver.start(status(200))
    const delivery = webhookDelivery({ secrets: [], deniedTargets })
    const [webhook] = webhooksOf([receiver.origin.replace('127.0.0.1', 'localhost') + path], delivery)
    return [receiver, webhook!]
  }

  it('applies after the lookup, and nothing is sent to an address on it', async () => {
    const [receiver, webhook] = await byName(LOCAL)
    const connections: unknown[] = []
    receiver.onConnection(() => connections.push(true))
    await expect(post(webhook)).rejects.toMatchObject({
      isFinal: true,
      message: 'was not sent: all addresses of the host are on the webhook deny list',
    })
    expect([connections, receiver.posts]).toEqual([[], []])
  })

  it('leaves the other addresses of a name', async () => {
    const [receiver, webhook] = await byName(['::1', '10.0.0.0/8'])
    await expect(post(webhook)).resolves.toBe(200)
    expect(receiver.posts).toHaveLength(1)
  })

  it.each([
    ['http://127.0.0.1:9/x', LOCAL],
    ['http://[::1]:9/x', LOCAL],
    ['http://[::ffff:127.0.0.1]:9/x', LOCAL],
    ['http://0x7f.1:9/x', LOCAL],
    ['http://169.254.169.254/latest', ['169.254.0.0/16']],
  ])('rejects %s at the start', (url, deniedTargets) => {
    const delivery = webhookDelivery({ secrets: [], deniedTargets })
    expect(() => webhooksOf([url], delivery)).toThrow(/SLUICE_SERVICE_INVALID_SETTING.*--webhook-deny-list denies/s)
    expect(() => webhooksOf([url], PLAIN_DELIVERY)).not.toThrow()
  })
})
