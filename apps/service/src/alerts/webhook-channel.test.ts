import type { DeliveryRecord, DeliveryStore } from '@sluice/runtime'
import { freePort } from '@sluice/testing/servers'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { AlertNotice } from './alert-record.ts'
import { Receiver, START_MS, status, TestLog, TestTime } from './alerts.test.support.ts'
import type { WebhookChannelParts, WebhookMessage } from './webhook-channel.ts'
import { WebhookChannel } from './webhook-channel.ts'
import { webhookDelivery, webhooksOf } from './webhook-request.ts'

const NOTICE: AlertNotice = {
  id: 'a1_firing',
  kind: 'firing',
  at: START_MS,
  text: 'Alert: store-errors on node-1: too many.',
  alert: {
    id: 'a1',
    rule: 'store-errors',
    scope: 'node',
    node: 'node-1',
    state: 'firing',
    summary: 'too many',
    value: 0.5,
    threshold: 0.01,
    unit: 'ratio',
    firedAt: START_MS,
  },
}

const SECRET = `whsec_${'a'.repeat(44)}`

const TIMEOUT_MS = 10_000

/** The waits before each try but the first, with jitter that is always in the middle. */
const WAITS_MS = [2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000]

class TestDeliveryStore implements DeliveryStore<WebhookMessage> {
  records: readonly DeliveryRecord<WebhookMessage>[] = []

  load = (): readonly DeliveryRecord<WebhookMessage>[] => this.records

  save = (records: readonly DeliveryRecord<WebhookMessage>[]): Promise<void> => {
    this.records = records
    return Promise.resolve()
  }
}

interface Scene {
  readonly channel: WebhookChannel
  readonly time: TestTime
  readonly log: TestLog
}

async function openChannel(
  urls: readonly string[],
  {
    time = new TestTime(),
    store = undefined as TestDeliveryStore | undefined,
    secrets = [SECRET] as readonly string[],
    tracing = undefined as WebhookChannelParts['tracing'],
  } = {},
): Promise<Scene> {
  const log = new TestLog()
  const webhooks = webhooksOf(urls, webhookDelivery({ secrets, deniedTargets: [] }))
  const { nowMs, sleep } = time
  const channel = await WebhookChannel.open({ webhooks, nowMs, sleep, random: () => 0.5, log, store, tracing })
  onTestFinished(() => channel.close())
  return { channel, time, log }
}

/** Lets the wait before try `number` (from 2 on) begin and pass. */
async function passWait(time: TestTime, number: number): Promise<void> {
  const waitMs = WAITS_MS[number - 2]!
  await time.untilWait(waitMs)
  await time.advance(waitMs)
}

describe('a receiver that fails at first', () => {
  it('gets the same notice with the same id and a new signature until it accepts it', async () => {
    const receiver = await Receiver.start((response, number) => response.writeHead(number <= 3 ? 503 : 200).end())
    const { channel, time } = await openChannel([`${receiver.origin}/hook`])
    expect(await channel.send(NOTICE)).toBe(true)
    for (const number of [2, 3, 4]) await passWait(time, number)
    await receiver.untilPosts(4)
    await expect.poll(() => channel.counts().delivered).toBe(1)
    const [first, ...others] = receiver.posts.map(({ body, headers }) => ({ body, id: headers['webhook-id'] }))
    expect(others).toEqual([first, first, first])
    const { text, alert } = NOTICE
    expect(JSON.parse(first!.body)).toEqual({
      type: 'alert.firing',
      timestamp: '2030-01-01T00:00:00.000Z',
      text,
      data: alert,
    })
    expect(first!.id).toBe('a1_firing')
    // Each try has its own time: a receiver rejects what is older than five minutes.
    const times = receiver.posts.map(({ headers }) => Number(headers['webhook-timestamp']) - START_MS / 1000)
    expect(times).toEqual([0, 2, 6, 14])
    expect(new Set(receiver.posts.map(({ headers }) => headers['webhook-signature'])).size).toBe(4)
    expect(channel.counts()).toMatchObject({ pending: 0, delivered: 1, failedTries: 3, dead: 0 })
    await time.advance(3_600_000)
    expect(receiver.posts).toHaveLength(4)
    expect(time.pending).toBe(0)
  })

  it('is waited for as long as it asks, when that is longer', async () => {
    const receiver = await Receiver.start((response, number) =>
      number === 1 ? response.writeHead(429, { 'Retry-After': '90' }).end() : response.end(),
    )
    const { channel, time } = await openChannel([receiver.origin])
    await channel.send(NOTICE)
    await time.untilWait(90_000)
    await time.advance(89_999)
    expect(receiver.posts).toHaveLength(1)
    await time.advance(1)
    await receiver.untilPosts(2)
  })
})

describe('a receiver that always fails', () => {
  it('is given up after ten tries; the message is a dead letter, which can be tried again', async () => {
    const receiver = await Receiver.start(status(500))
    const { channel, time, log } = await openChannel([`${receiver.origin}/T0KEN`])
    await channel.send(NOTICE)
    for (let number = 2; number <= 10; number++) await passWait(time, number)
    await expect.poll(() => channel.counts().dead).toBe(1)
    expect(receiver.posts).toHaveLength(10)
    const [letter] = channel.deadLetters()
    expect(letter).toEqual({
      id: expect.stringMatching(/^a1_firing\.[0-9a-f]{16}$/),
      alertId: 'a1',
      destination: receiver.origin,
      attempts: 10,
      firstAttemptAt: START_MS,
      lastAttemptAt: START_MS + WAITS_MS.reduce((sum, ms) => sum + ms, 0),
      error: 'answered with status 500',
    })
    expect(log.messages.filter((message) => message.includes('will be retried'))).toHaveLength(9)
    expect(log.messages.at(-1)).toBe('a webhook message could not be delivered')
    expect(JSON.stringify(log.lines)).not.toContain('T0KEN')

    receiver.answerWith(status(200))
    expect(channel.redeliver(letter!.id)).toBe('queued')
    await expect.poll(() => channel.counts().delivered).toBe(1)
    expect(receiver.posts[10]!.headers['webhook-id']).toBe('a1_firing')
    expect(channel.deadLetters()).toEqual([])
    expect(channel.redeliver(letter!.id)).toBe('unknown')
  })

  it('is given up at once when no try can help', async () => {
    const receiver = await Receiver.start(status(302, { Location: 'http://169.254.169.254/' }))
    const { channel } = await openChannel([receiver.origin])
    await channel.send(NOTICE)
    await expect.poll(() => channel.counts().dead).toBe(1)
    expect(receiver.posts).toHaveLength(1)
    expect(channel.deadLetters()).toMatchObject([{ attempts: 1, error: expect.stringContaining('not followed') }])
  })

  it('leaves dead letters that are listed newest first', async () => {
    const receiver = await Receiver.start(status(400))
    const { channel } = await openChannel([receiver.origin])
    for (const [index, id] of ['a1', 'a2', 'a3'].entries()) {
      await channel.send({ ...NOTICE, id: `${id}_firing`, alert: { ...NOTICE.alert, id } })
      await expect.poll(() => channel.counts().dead).toBe(index + 1)
    }
    expect(channel.deadLetters().map(({ alertId }) => alertId)).toEqual(['a3', 'a2', 'a1'])
  })

  it('does not keep others from theirs', async () => {
    const bad = await Receiver.start(status(500))
    const good = await Receiver.start(status(200))
    const { channel } = await openChannel([bad.origin, good.origin])
    await channel.send(NOTICE)
    await expect.poll(() => channel.counts()).toMatchObject({ delivered: 1, pending: 1 })
    expect(good.posts).toHaveLength(1)
    const keys = [bad, good].map(({ posts }) => posts[0]!.headers['webhook-id'])
    // One event: a receiver at both addresses knows that it has it.
    expect(keys).toEqual(['a1_firing', 'a1_firing'])
  })
})

describe('a receiver that does not answer', () => {
  it('is given up for this try after ten seconds, and tried again', async () => {
    const receiver = await Receiver.start((response, number) => {
      if (number > 1) response.end()
    })
    const { channel, time, log } = await openChannel([receiver.origin])
    await channel.send(NOTICE)
    await receiver.untilPosts(1)
    await time.advance(TIMEOUT_MS - 1)
    expect(channel.counts()).toMatchObject({ failedTries: 0, inFlight: 1 })
    await time.advance(1)
    expect(channel.counts()).toMatchObject({ failedTries: 1, inFlight: 0 })
    expect(log.lines[0]?.fields?.['error']).toHaveProperty('message', expect.stringContaining('No answer in 10000 ms'))
    await passWait(time, 2)
    await receiver.untilPosts(2)
    await expect.poll(() => channel.counts().delivered).toBe(1)
  })

  it('or only begins to, is given up as well', async () => {
    const receiver = await Receiver.start((response) => response.writeHead(200).write('...'))
    const { channel, time } = await openChannel([receiver.origin])
    await channel.send(NOTICE)
    await receiver.untilPosts(1)
    await time.advance(TIMEOUT_MS)
    expect(channel.counts()).toMatchObject({ failedTries: 1, delivered: 0 })
  })
})

describe('a notice', () => {
  it('that is given again is not sent again while it is on its way or dead', async () => {
    const receiver = await Receiver.start(status(400))
    const { channel } = await openChannel([receiver.origin])
    expect(await Promise.all([channel.send(NOTICE), channel.send(NOTICE)])).toEqual([true, true])
    await expect.poll(() => channel.counts().dead).toBe(1)
    expect(await channel.send(NOTICE)).toBe(true)
    expect(receiver.posts).toHaveLength(1)
  })

  it('is taken and goes nowhere when there is no webhook', async () => {
    const { channel } = await openChannel([])
    expect(await channel.send(NOTICE)).toBe(true)
    expect(channel.counts()).toMatchObject({ pending: 0, delivered: 0 })
  })

  it('is not taken when too many are on their way', async () => {
    const receiver = await Receiver.start(() => undefined)
    const { channel } = await openChannel([receiver.origin])
    const taken = await Promise.all(
      Array.from({ length: 501 }, (_, number) => channel.send({ ...NOTICE, id: `a${number}_firing` })),
    )
    expect(taken.filter((isTaken) => isTaken)).toHaveLength(500)
    expect(taken.at(-1)).toBe(false)
  })

  it('is not taken after the end', async () => {
    const { channel } = await openChannel(['http://127.0.0.1:9/'])
    await channel.close()
    expect(await channel.send(NOTICE)).toBe(false)
  })
})

describe('after a restart', () => {
  it('what was on its way is sent, with the tries it has left; what was dead is there', async () => {
    const receiver = await Receiver.start(status(503))
    const store = new TestDeliveryStore()
    const before = await openChannel([receiver.origin], { store })
    await before.channel.send(NOTICE)
    await passWait(before.time, 2)
    await before.time.untilWait(WAITS_MS[1]!)
    await before.channel.close()
    expect(receiver.posts).toHaveLength(2)

    const after = await openChannel([receiver.origin], { store, time: new TestTime() })
    for (let number = 2; number <= 8; number++) await passWait(after.time, number)
    await expect.poll(() => after.channel.counts().dead).toBe(1)
    expect(receiver.posts).toHaveLength(10)
    expect(new Set(receiver.posts.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
    await after.channel.close()

    receiver.answerWith(status(200))
    const last = await openChannel([receiver.origin], { store })
    const [letter] = last.channel.deadLetters()
    expect(letter).toMatchObject({ alertId: 'a1', attempts: 10 })
    expect(last.channel.redeliver(letter!.id)).toBe('queued')
    await expect.poll(() => last.channel.counts().delivered).toBe(1)
    expect(store.records).toEqual([])
  })

  it('a receiver that is no longer configured becomes a dead letter, and gets nothing', async () => {
    const receiver = await Receiver.start(status(503))
    const other = await Receiver.start(status(200))
    const store = new TestDeliveryStore()
    const before = await openChannel([receiver.origin], { store })
    await before.channel.send(NOTICE)
    await before.time.untilWait(WAITS_MS[0]!)
    await before.channel.close()
    const after = await openChannel([other.origin], { store })
    await expect.poll(() => after.channel.counts().dead).toBe(1)
    expect(after.channel.deadLetters()).toMatchObject([
      { destination: receiver.origin, error: 'is no longer configured' },
    ])
    expect([receiver.posts.length, other.posts.length]).toEqual([1, 0])
  })

  it('neither address nor secret is in what was kept', async () => {
    const receiver = await Receiver.start(status(503))
    const store = new TestDeliveryStore()
    const { channel, time } = await openChannel([`${receiver.origin}/T0KEN`], { store })
    await channel.send(NOTICE)
    await time.untilWait(WAITS_MS[0]!)
    const kept = JSON.stringify(store.records)
    expect(kept).toContain('a1')
    expect(kept).not.toMatch(/T0KEN|whsec_|aaaa/)
  })
})

describe('a try', () => {
  it('is a span of its own trace, which is propagated to the receiver', async () => {
    const receiver = await Receiver.start((response, number) => response.writeHead(number === 1 ? 503 : 204).end())
    const spans: [string, number | undefined][] = []
    let running = 0
    const tracing = {
      beginAsking: (operation: string) => {
        const number = spans.push([operation, undefined])
        return {
          run: <T>(work: () => T): T => {
            running = number
            return work()
          },
          end: (code: number) => {
            spans[number - 1]![1] = code
          },
        }
      },
      outgoingHeaders: () => ({ traceparent: `trace-${running}` }),
    }
    const { channel, time } = await openChannel([`${receiver.origin}/hook`], { tracing })
    await channel.send(NOTICE)
    await passWait(time, 2)
    await receiver.untilPosts(2)
    await expect.poll(() => channel.counts().delivered).toBe(1)
    expect(receiver.posts.map(({ headers }) => headers['traceparent'])).toEqual(['trace-1', 'trace-2'])
    expect(spans).toEqual([
      ['POST webhook', 503],
      ['POST webhook', 204],
    ])
  })

  it('without a response is a span without a status', async () => {
    const ended: number[] = []
    const tracing = {
      beginAsking: () => ({ run: <T>(work: () => T): T => work(), end: (code: number) => void ended.push(code) }),
      outgoingHeaders: () => ({}),
    }
    const { channel } = await openChannel([`http://127.0.0.1:${await freePort()}/hook`], { tracing })
    await channel.send(NOTICE)
    await expect.poll(() => ended).toEqual([0])
  })
})
