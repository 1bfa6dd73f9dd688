import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { Reply } from './alerts.test.support.ts'
import { Receiver, status } from './alerts.test.support.ts'
import type { Webhook } from './webhook.ts'
import { postWebhook, webhooksOf } from './webhook.ts'

const BODY = JSON.stringify({ text: 'häßlich ☂' })

async function hookTo(reply: Reply, secret?: string): Promise<{ receiver: Receiver; webhook: Webhook }> {
  const receiver = await Receiver.start(reply)
  const [webhook] = webhooksOf([`${receiver.origin}/hook/T0KEN?x=1`], secret)
  return { receiver, webhook: webhook! }
}

function post(webhook: Webhook, signal = new AbortController().signal): Promise<number> {
  return postWebhook(webhook, { body: BODY, idempotencyKey: 'a1.firing.x', signal })
}

describe('a post', () => {
  it('is JSON with its key, to the whole address, on a connection of its own', async () => {
    const { receiver, webhook } = await hookTo(status(204))
    await post(webhook)
    expect(receiver.posts).toEqual([
      { method: 'POST', path: '/hook/T0KEN?x=1', body: BODY, headers: expect.anything() },
    ])
    const { headers } = receiver.posts[0]!
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(BODY)),
      'idempotency-key': 'a1.firing.x',
      'user-agent': 'sluice',
      connection: 'close',
    })
    expect(headers).not.toHaveProperty('x-sluice-signature')
  })

  it('is signed when there is a secret', async () => {
    const secret = 'correct horse battery'
    const { receiver, webhook } = await hookTo(status(200), secret)
    await post(webhook)
    const { headers, body } = receiver.posts[0]!
    const expected = createHmac('sha256', secret).update(Buffer.from(body)).digest('hex')
    expect(headers['x-sluice-signature']).toBe(`sha256=${expected}`)
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
    await expect(post(webhook)).rejects.toMatchObject({ message: 'did not answer: ECONNRESET', isFinal: false })
  })

  it('fails when nobody listens, and does not tell the address', async () => {
    const { receiver, webhook } = await hookTo(status(200))
    await receiver.stop()
    const error = await post(webhook).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ message: 'did not answer: ECONNREFUSED', isFinal: false })
    expect(JSON.stringify({ ...(error as Error), text: String(error) })).not.toMatch(/127|T0KEN/)
  })

  it('ends with its signal', async () => {
    const { receiver, webhook } = await hookTo(() => undefined)
    const ended = new AbortController()
    const posting = post(webhook, ended.signal)
    await receiver.untilPosts(1)
    ended.abort(new Error('too slow'))
    await expect(posting).rejects.toThrow('too slow')
  })

  it('ends with its signal in the middle of an answer too', async () => {
    const { receiver, webhook } = await hookTo((response) => response.writeHead(200).write('half'))
    const ended = new AbortController()
    const posting = post(webhook, ended.signal)
    await receiver.untilPosts(1)
    ended.abort(new Error('too slow'))
    await expect(posting).rejects.toThrow('too slow')
  })

  it('to https is encrypted', async () => {
    const { receiver } = await hookTo(status(200))
    const [webhook] = webhooksOf([receiver.origin.replace('http:', 'https:')], undefined)
    await expect(post(webhook!)).rejects.toMatchObject({
      message: expect.stringMatching(/^did not answer: .*(SSL|EPROTO)/),
    })
    expect(receiver.posts).toEqual([])
  })
})

describe('addresses', () => {
  it('are shown as scheme and host, and named without what is in them', () => {
    const [webhook] = webhooksOf(['https://ops:pass@hooks.example.com:8443/T000/SECRET?token=x'], undefined)
    expect(webhook!.destination).toBe('https://hooks.example.com:8443')
    expect(webhook!.id).toMatch(/^[0-9a-f]{16}$/)
  })

  it('count once each, and have ids that stay', () => {
    const urls = ['http://one.example/a', 'http://one.example/b', 'http://one.example/a']
    const webhooks = webhooksOf(urls, undefined)
    expect(webhooks.map(({ url }) => url.pathname)).toEqual(['/a', '/b'])
    expect(webhooksOf(urls.toReversed(), undefined).map(({ id }) => id)).toEqual(webhooks.map(({ id }) => id))
  })

  it.each(['ftp://hooks.example.com/x', 'file:///etc/passwd', 'javascript:alert(1)', 'hooks.example.com/T0KEN', ''])(
    'of another form are refused without being told: %s',
    (text) => {
      let message = ''
      try {
        webhooksOf([text], undefined)
      } catch (error) {
        message = String(error)
      }
      expect(message).toContain('SLUICE_SERVICE_INVALID_SETTING')
      expect(message).toContain('expected an address that begins with http:// or https://')
      expect(message).not.toMatch(/T0KEN|passwd|example/)
    },
  )
})
