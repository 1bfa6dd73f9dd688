import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Alert } from '@sluice/contract'
import type { Logger } from '@sluice/runtime'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { ServiceMessages } from '../service-context.ts'
import { SingleThread } from '../thread-messages/message-bus.ts'
import { alertRules } from './alert-rule.ts'
import type { SignalRecorder, SignalSnapshot } from './alert-signals.ts'
import { threadSignals } from './alert-signals.ts'
import { PLAIN_DELIVERY, Receiver, START_MS, status, TestLog, TestTime } from './alerts.test.support.ts'
import type { AlertParts, ProcessAlerts } from './process-alerts.ts'
import { openAlerts } from './process-alerts.ts'

const RULES = alertRules()

/** A node that shares nothing with others. */
const ALONE: Pick<AlertParts, 'shared' | 'documents' | 'exchanges'> = {
  shared: { databaseUrl: undefined, redis: undefined },
  documents: { database: noDocuments, redis: noDocuments },
  exchanges: { database: noDocuments, redis: noDocuments },
}

function noDocuments(): never {
  throw new Error('a node that shares nothing asks for no document')
}

let folder: string
let path: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-alerts-'))
  path = join(folder, 'alerts.json')
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
})

interface Process {
  readonly alerts: ProcessAlerts
  readonly signals: SignalRecorder
  readonly threads: SingleThread<ServiceMessages>
  readonly time: TestTime
  readonly log: TestLog
}

/** The alerts of a process with one thread. */
async function start(webhooks: readonly string[], { time = new TestTime(), ids = 'a' } = {}): Promise<Process> {
  const threads = new SingleThread<ServiceMessages>()
  const log = new TestLog()
  const { nowMs, sleep } = time
  const signals = threadSignals(threads, { rules: RULES, nowMs, configLagMs: () => 0 })
  let count = 0
  const alerts = await openAlerts({
    tracing: undefined,
    rules: RULES,
    ...ALONE,
    remindEveryMs: 0,
    node: 'node-1',
    newId: () => `${ids}${++count}`,
    webhooks,
    blockWebhooks: [],
    delivery: PLAIN_DELIVERY,
    path,
    nowMs,
    sleep,
    random: () => 0.5,
    log: log as unknown as Logger,
    threads,
  })
  onTestFinished(() => alerts.close())
  return { alerts, signals, threads, time, log }
}

function failCalls({ signals }: Process, count: number): void {
  for (let call = 0; call < count; call++) signals.recordStoreCall(500, true)
}

function noticesOf({ posts }: Receiver): readonly string[] {
  return posts.map(({ body }) => {
    const { type, data } = JSON.parse(body) as { readonly type: string; readonly data: Alert }
    return `${type.replace('alert.', '')} ${data.id}`
  })
}

describe('the alerts of a process', () => {
  it('look once a second at what the threads tell, and tell receivers of both ends', async () => {
    const receiver = await Receiver.start(status(200))
    const running = await start([receiver.origin])
    failCalls(running, 10)
    await running.time.advance(999)
    expect(running.alerts.firingCount()).toBe(0)
    await running.time.advance(1)
    expect(running.alerts.firingCount()).toBe(1)
    await expect.poll(() => running.alerts.webhookCounts().delivered).toBe(1)
    await running.time.advance(120_000)
    await receiver.untilPosts(2)
    expect(noticesOf(receiver)).toEqual(['firing a1', 'resolved a1'])
    expect(running.alerts.firingCount()).toBe(0)
    await expect.poll(() => running.alerts.webhookCounts()).toMatchObject({ delivered: 2, pending: 0 })
  })

  it('continue after a restart: nothing is sent twice, and the end is sent', async () => {
    const receiver = await Receiver.start(status(200))
    const before = await start([receiver.origin])
    failCalls(before, 10)
    await before.time.advance(1000)
    await receiver.untilPosts(1)
    before.alerts.silence('a1', { by: 'ada', durationMs: 1 })
    before.alerts.acknowledge('a1', { by: 'ada' })
    await expect.poll(() => before.alerts.webhookCounts().delivered).toBe(1)
    await before.alerts.close()

    const after = await start([receiver.origin], { time: before.time, ids: 'b' })
    expect(await after.alerts.list()).toMatchObject([{ id: 'a1', state: 'firing', acknowledgedBy: 'ada' }])
    await after.time.advance(60_000)
    await receiver.untilPosts(2)
    expect(noticesOf(receiver)).toEqual(['firing a1', 'resolved a1'])
  })

  it('deliver after a restart what could not be before', async () => {
    const receiver = await Receiver.start(status(503))
    const before = await start([receiver.origin])
    failCalls(before, 10)
    await before.time.advance(1000)
    await receiver.untilPosts(1)
    await before.time.untilWait(2000)
    await before.alerts.close()
    receiver.answerWith(status(200))
    const after = await start([receiver.origin], { time: before.time, ids: 'b' })
    await receiver.untilPosts(2)
    expect(noticesOf(receiver)).toEqual(['firing a1', 'firing a1'])
    expect(receiver.posts[1]!.headers['webhook-id']).toBe(receiver.posts[0]!.headers['webhook-id'])
    await expect.poll(() => after.alerts.webhookCounts().delivered).toBe(1)
  })

  it('keep no address and no secret on disk', async () => {
    const receiver = await Receiver.start(status(503))
    const running = await start([`${receiver.origin}/T0KEN`])
    failCalls(running, 10)
    await running.time.advance(1000)
    await running.time.untilWait(2000)
    await running.alerts.close()
    const text = await readFile(path, 'utf8')
    expect(text).toContain('a1_firing')
    expect(text).not.toContain('T0KEN')
  })

  it('start over when their file is damaged, and say so', async () => {
    await writeFile(path, 'torn')
    const { alerts, log } = await start([])
    expect(await alerts.list()).toEqual([])
    expect(log.lines).toMatchObject([
      { level: 'error', message: expect.stringContaining('damaged'), fields: { asidePath: `${path}.damaged` } },
    ])
  })

  it('reject an address that is none', async () => {
    await expect(start(['ftp://hooks.example.com'])).rejects.toMatchObject({ code: 'SLUICE_SERVICE_INVALID_SETTING' })
  })

  it('wait for nothing any more when they are closed', async () => {
    const receiver = await Receiver.start(status(503))
    const running = await start([receiver.origin])
    failCalls(running, 10)
    await running.time.advance(1000)
    await running.time.untilWait(2000)
    await running.alerts.close()
    expect(running.time.pending).toBe(0)
    await running.alerts.close()
  })
})

describe('several threads', () => {
  const part = (hits: number, total: number): SignalSnapshot => ({
    checks: { hits: 0, total: 0 },
    storeCalls: { hits, total },
    storeLatency: [],
    configLagMs: 0,
  })

  it('are looked at together, and one that fails does not keep the monitor from the next look', async () => {
    const time = new TestTime()
    const log = new TestLog()
    const parts: (readonly SignalSnapshot[] | Error)[] = [
      [part(1, 60), part(0, 60)],
      new Error('a thread ended'),
      [part(1, 60), part(1, 60)],
    ]
    let look = 0
    const threads = new SingleThread<ServiceMessages>()
    vi.spyOn(threads, 'gather').mockImplementation(() => {
      const replies = parts[Math.min(look++, parts.length - 1)]!
      return replies instanceof Error ? Promise.reject(replies) : Promise.resolve({ replies, timedOut: 0 } as never)
    })
    const alerts = await openAlerts({
      tracing: undefined,
      rules: RULES,
      ...ALONE,
      remindEveryMs: 0,
      node: 'node-1',
      newId: () => 'a1',
      webhooks: [],
      blockWebhooks: [],
      delivery: PLAIN_DELIVERY,
      path,
      nowMs: time.nowMs,
      sleep: time.sleep,
      random: () => 0.5,
      log: log as unknown as Logger,
      threads,
    })
    onTestFinished(() => alerts.close())
    await time.advance(1000)
    expect(await alerts.list()).toEqual([])
    expect(log.messages).toEqual(['could not evaluate alerts'])
    await time.advance(1000)
    expect(await alerts.list()).toMatchObject([{ value: 2 / 120, firedAt: START_MS + 2000 }])
  })

  it('reach the monitor from everywhere', async () => {
    const running = await start(['http://127.0.0.1:9/'])
    failCalls(running, 10)
    await running.time.advance(1000)
    const { threads } = running
    const acknowledged = await threads.callMain('alerts.acknowledge', 'a1', { by: 'ada', note: 'n' })
    expect(acknowledged).toMatchObject({ acknowledgedBy: 'ada' })
    const silenced = await threads.callMain('alerts.silence', 'a1', { by: 'bob', durationMs: 5 })
    expect(silenced).toMatchObject({ silencedBy: 'bob' })
    expect(await threads.callMain('alerts.list')).toEqual(running.alerts.list())
    expect(await threads.callMain('alerts.list')).toMatchObject([{ id: 'a1', acknowledgedNote: 'n' }])
    expect(await threads.callMain('alerts.acknowledge', 'other', { by: 'ada' })).toBeUndefined()
    expect(await threads.callMain('alerts.deadLetters')).toEqual([])
    expect(await threads.callMain('alerts.redeliver', 'other')).toBe('unknown')
  })
})
