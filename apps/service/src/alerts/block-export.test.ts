import { expect, it, onTestFinished } from 'vitest'
import { PLAIN_DELIVERY, Receiver, START_MS, status, TestLog, TestTime } from './alerts.test.support.ts'
import { BlockExport } from './block-export.ts'
import { WebhookChannel } from './webhook-channel.ts'
import { webhooksOf } from './webhook-request.ts'

it('drops changes that find no room, says so once, and says when there is room again', async () => {
  const held: (() => void)[] = []
  const receiver = await Receiver.start((response, number) => held.push(() => status(204)(response, number)))
  const time = new TestTime()
  const log = new TestLog()
  const channel = await WebhookChannel.open({
    ...{ nowMs: time.nowMs, sleep: time.sleep, random: () => 0.5, log, maxPending: 2 },
    webhooks: webhooksOf([receiver.origin], PLAIN_DELIVERY),
  })
  onTestFinished(() => channel.close())
  let ids = 0
  const blocks = new BlockExport({
    send: (notice) => channel.send(notice),
    newId: () => `${++ids}`,
    nowMs: time.nowMs,
    log,
  })
  const add = (last: number): Promise<void> =>
    blocks.add({
      kind: 'created',
      block: { dimension: 'ip', entity: `192.0.2.${last}`, until: START_MS + 1000, strikes: 1 },
    })
  for (const last of [1, 2, 3, 4]) await add(last)
  expect(blocks.dropped).toBe(2)
  await receiver.untilPosts(2)
  for (const answer of held) answer()
  await expect.poll(() => channel.counts().delivered).toBe(2)
  await add(5)
  await receiver.untilPosts(3)
  expect([blocks.dropped, receiver.posts.length]).toEqual([2, 3])
  expect(log.lines.map(({ level, message }) => [level, message])).toEqual([
    ['error', 'too many block changes are pending: further ones are dropped'],
    ['info', 'block changes are exported again'],
  ])
})
