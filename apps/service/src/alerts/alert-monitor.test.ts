import { describe, expect, it } from 'vitest'
import { DENIALS, ERRORS, TestChannel, TestMonitor, TestStateStore } from './alert-monitor.test.support.ts'
import { START_MS } from './alerts.test.support.ts'

const MINUTE = 60_000

/** Has errors fire at 0, which needs no waiting; they are resolved a minute after they are gone. */
async function firingMonitor(options: ConstructorParameters<typeof TestMonitor>[0] = {}): Promise<TestMonitor> {
  const test = new TestMonitor(options)
  await test.lookAt(0, ERRORS)
  return test
}

describe('rules with their defaults', () => {
  it('a denial rate above 20 % fires after 2 minutes, and is resolved a minute after it is gone', async () => {
    const test = new TestMonitor()
    await test.lookAt(0, DENIALS)
    await test.lookAt(2 * MINUTE - 1, DENIALS)
    expect(test.monitor.list()).toEqual([])
    await test.lookAt(2 * MINUTE, DENIALS)
    expect(test.monitor.list()).toEqual([
      {
        id: 'a1',
        rule: 'denial-rate',
        scope: 'node',
        node: 'node-1',
        state: 'firing',
        summary: '30 % of checks in the last 60 seconds were denied, above 20 %',
        value: 0.3,
        threshold: 0.2,
        unit: 'ratio',
        firedAt: START_MS + 2 * MINUTE,
      },
    ])
    await test.lookAt(3 * MINUTE)
    await test.lookAt(4 * MINUTE - 1)
    expect(test.monitor.list()[0]).toMatchObject({ state: 'firing' })
    await test.lookAt(4 * MINUTE)
    expect(test.monitor.list()[0]).toMatchObject({ state: 'resolved', value: 0.3, resolvedAt: START_MS + 4 * MINUTE })
    expect(test.told).toEqual(['firing a1', 'resolved a1'])
  })

  it('a denial rate of exactly 20 % is none', async () => {
    const test = new TestMonitor()
    for (const minute of [0, 2, 4]) await test.lookAt(minute * MINUTE, { checks: { hits: 20, total: 100 } })
    expect(test.monitor.list()).toEqual([])
  })

  it('a p99 of the store above 10 ms fires after 5 minutes', async () => {
    const test = new TestMonitor()
    const slow = { storeLatency: [...new Array(14).fill(0), 100, ...new Array(15).fill(0)] }
    await test.lookAt(0, slow)
    await test.lookAt(5 * MINUTE - 1, slow)
    expect(test.told).toEqual([])
    await test.lookAt(5 * MINUTE, slow)
    expect(test.monitor.list()).toMatchObject([{ rule: 'store-latency', unit: 'ms', threshold: 10 }])
  })

  it('errors of the store above 1 % fire at once', async () => {
    const test = new TestMonitor()
    await test.lookAt(0, { storeCalls: { hits: 1, total: 100 } })
    expect(test.told).toEqual([])
    await test.lookAt(1, ERRORS)
    expect(test.monitor.list()).toMatchObject([{ rule: 'store-errors', value: 0.02 }])
  })

  it('rules that are out of date by more than 10 minutes fire at once', async () => {
    const test = new TestMonitor()
    await test.lookAt(0, { configLagMs: 600_000 })
    expect(test.told).toEqual([])
    await test.lookAt(1, { configLagMs: 600_001 })
    expect(test.monitor.list()).toMatchObject([{ rule: 'config-lag', value: 600.001, unit: 's' }])
  })
})

describe('an alert', () => {
  it('has the last value above the threshold, and is sent once however long it lasts', async () => {
    const test = await firingMonitor()
    await test.lookAt(1000, { storeCalls: { hits: 50, total: 100 } })
    await test.lookAt(2000, { storeCalls: { hits: 0, total: 100 } })
    expect(test.monitor.list()).toMatchObject([{ value: 0.5, summary: expect.stringMatching(/^50 % /) }])
    for (let second = 3; second < 100; second++) await test.lookAt(second * 1000, ERRORS)
    expect(test.told).toEqual(['firing a1'])
  })

  it('that comes back in time is the same one, and nothing is sent', async () => {
    const test = await firingMonitor()
    await test.lookAt(1000)
    await test.lookAt(1000 + MINUTE - 1, ERRORS)
    await test.lookAt(1000 + MINUTE)
    expect(test.monitor.list()).toHaveLength(1)
    expect(test.told).toEqual(['firing a1'])
  })

  it('that comes back later is another one', async () => {
    const test = await firingMonitor()
    await test.lookAt(1000)
    await test.lookAt(1000 + MINUTE)
    await test.lookAt(2000 + MINUTE, ERRORS)
    expect(test.monitor.list()).toMatchObject([
      { id: 'a2', state: 'firing' },
      { id: 'a1', state: 'resolved' },
    ])
    expect(test.told).toEqual(['firing a1', 'resolved a1', 'firing a2'])
  })

  it('ends when no calls come any more', async () => {
    const test = await firingMonitor()
    await test.lookAt(1000, { storeCalls: { hits: 9, total: 9 } })
    await test.lookAt(1000 + MINUTE, { storeCalls: { hits: 9, total: 9 } })
    expect(test.told).toEqual(['firing a1', 'resolved a1'])
  })

  it('is sent with the alert at that time and a unique id', async () => {
    const test = await firingMonitor()
    const [alert] = test.monitor.list()
    expect(test.channel.given).toEqual([
      {
        id: 'a1_firing',
        kind: 'firing',
        at: START_MS,
        text: 'Alert: store-errors on node-1: 2 % of store calls in the last 60 seconds failed, above 1 %.',
        alert,
      },
    ])
  })

  it('is repeated at the configured interval until it is acknowledged', async () => {
    const test = await firingMonitor({ remindEveryMs: 5 * MINUTE })
    await test.lookAt(5 * MINUTE - 1, ERRORS)
    await test.lookAt(5 * MINUTE, ERRORS)
    await test.lookAt(10 * MINUTE - 1, ERRORS)
    await test.lookAt(10 * MINUTE, ERRORS)
    expect(test.channel.given.map(({ id }) => id)).toEqual(['a1_firing', 'a1_reminder_1', 'a1_reminder_2'])
    test.monitor.acknowledge('a1', { by: 'ops' })
    await test.lookAt(15 * MINUTE, ERRORS)
    expect(test.told).toHaveLength(3)
  })

  it('of several rules is listed by what holds first, newest first', async () => {
    const test = new TestMonitor({ rules: { 'denial-rate': { forSeconds: 0 } } })
    await test.lookAt(0, ERRORS)
    await test.lookAt(1000)
    await test.lookAt(1000 + MINUTE, DENIALS)
    await test.lookAt(2000 + MINUTE, { ...DENIALS, configLagMs: 700_000 })
    expect(test.monitor.list().map(({ id, rule, state }) => [id, rule, state])).toEqual([
      ['a3', 'config-lag', 'firing'],
      ['a2', 'denial-rate', 'firing'],
      ['a1', 'store-errors', 'resolved'],
    ])
  })

  it('is forgotten when there are a hundred newer ones; one that holds is not', async () => {
    const test = new TestMonitor({ rules: { 'store-errors': { resolveAfterSeconds: 0 } } })
    await test.lookAt(0, { configLagMs: 700_000 })
    for (let round = 1; round <= 120; round++) {
      await test.lookAt(round * 1000, { ...ERRORS, configLagMs: 700_000 })
      await test.lookAt(round * 1000 + 1, { configLagMs: 700_000 })
    }
    const ids = test.monitor.list().map(({ id }) => id)
    expect(ids).toHaveLength(100)
    expect(ids.slice(0, 2)).toEqual(['a1', 'a121'])
    expect(ids.at(-1)).toBe('a23')
  })
})

describe('an acknowledgement', () => {
  it('says who looks after an alert, and stays with it when it is over', async () => {
    const test = await firingMonitor()
    test.nowMs = START_MS + 500
    const shown = test.monitor.acknowledge('a1', { by: 'ada', note: 'load test' })
    expect(shown).toMatchObject({
      id: 'a1',
      acknowledgedAt: START_MS + 500,
      acknowledgedBy: 'ada',
      acknowledgedNote: 'load test',
    })
    await test.lookAt(1000)
    await test.lookAt(1000 + MINUTE)
    expect(test.monitor.list()).toMatchObject([{ state: 'resolved', acknowledgedBy: 'ada' }])
    expect(test.told).toEqual(['firing a1', 'resolved a1'])
  })

  it('takes the place of the one before', async () => {
    const test = await firingMonitor()
    test.monitor.acknowledge('a1', { by: 'ada', note: 'mine' })
    const shown = test.monitor.acknowledge('a1', { by: 'bob' })
    expect(shown).toMatchObject({ acknowledgedBy: 'bob' })
    expect(shown).not.toHaveProperty('acknowledgedNote')
  })

  it('is not for the alert that follows', async () => {
    const test = await firingMonitor()
    test.monitor.acknowledge('a1', { by: 'ada' })
    await test.lookAt(1000)
    await test.lookAt(1000 + MINUTE)
    await test.lookAt(2000 + MINUTE, ERRORS)
    expect(test.monitor.list()[0]).not.toHaveProperty('acknowledgedBy')
  })

  it('of an alert that does not exist is none', async () => {
    const test = await firingMonitor()
    expect(test.monitor.acknowledge('a2', { by: 'ada' })).toBeUndefined()
  })
})

describe('a silence', () => {
  it('ends on time: an alert that still fires is sent then, and not a millisecond before', async () => {
    const test = await firingMonitor()
    await test.lookAt(1000)
    await test.lookAt(1000 + MINUTE)
    test.monitor.silence('a1', { by: 'ada', durationMs: 10 * MINUTE, note: 'maintenance' })
    await test.lookAt(2000 + MINUTE, ERRORS)
    expect(test.monitor.list()[0]).toMatchObject({
      id: 'a2',
      silencedUntil: START_MS + 1000 + 11 * MINUTE,
      silencedBy: 'ada',
      silencedNote: 'maintenance',
    })
    await test.lookAt(1000 + 11 * MINUTE - 1, ERRORS)
    expect(test.told).toEqual(['firing a1', 'resolved a1'])
    await test.lookAt(1000 + 11 * MINUTE, ERRORS)
    expect(test.told).toEqual(['firing a1', 'resolved a1', 'firing a2'])
    expect(test.monitor.list()[0]).not.toHaveProperty('silencedUntil')
  })

  it('delays the end of an alert too, which is sent after it', async () => {
    const test = await firingMonitor()
    test.monitor.silence('a1', { by: 'ada', durationMs: 10 * MINUTE })
    await test.lookAt(1000)
    await test.lookAt(1000 + MINUTE)
    expect(test.monitor.list()).toMatchObject([{ state: 'resolved' }])
    expect(test.told).toEqual(['firing a1'])
    await test.lookAt(10 * MINUTE)
    expect(test.told).toEqual(['firing a1', 'resolved a1'])
  })

  it('swallows what began and ended in it', async () => {
    const test = await firingMonitor({ rules: { 'store-errors': { resolveAfterSeconds: 0 } } })
    await test.lookAt(1000)
    test.monitor.silence('a1', { by: 'ada', durationMs: 10 * MINUTE })
    await test.lookAt(2000, ERRORS)
    await test.lookAt(3000)
    await test.lookAt(10 * MINUTE + 1000)
    expect(test.monitor.list()).toHaveLength(2)
    expect(test.told).toEqual(['firing a1', 'resolved a1'])
  })

  it('does not make receivers miss the end of what they know of, whatever comes in between', async () => {
    const test = await firingMonitor({ rules: { 'store-errors': { resolveAfterSeconds: 0 } } })
    test.monitor.silence('a1', { by: 'ada', durationMs: 10 * MINUTE })
    for (let round = 1; round <= 120; round++) {
      await test.lookAt(round * 1000)
      await test.lookAt(round * 1000 + 1, ERRORS)
    }
    expect(test.monitor.list().map(({ id }) => id)).toContain('a1')
    await test.lookAt(10 * MINUTE, ERRORS)
    expect(test.told).toEqual(['firing a1', 'resolved a1', 'firing a121'])
  })

  it('leaves other rules alone', async () => {
    const test = await firingMonitor()
    test.monitor.silence('a1', { by: 'ada', durationMs: 10 * MINUTE })
    await test.lookAt(1000, { ...ERRORS, configLagMs: 700_000 })
    expect(test.told).toEqual(['firing a1', 'firing a2'])
  })

  it('of no length ends another one', async () => {
    const test = await firingMonitor()
    test.monitor.silence('a1', { by: 'ada', durationMs: 10 * MINUTE })
    await test.lookAt(1000)
    await test.lookAt(1000 + MINUTE)
    expect(test.monitor.silence('a1', { by: 'bob', durationMs: 0 })).not.toHaveProperty('silencedUntil')
    await test.lookAt(2000 + MINUTE)
    expect(test.told).toEqual(['firing a1', 'resolved a1'])
  })

  it('keeps reminders quiet', async () => {
    const test = await firingMonitor({ remindEveryMs: MINUTE })
    test.monitor.silence('a1', { by: 'ada', durationMs: 5 * MINUTE })
    await test.lookAt(5 * MINUTE - 1, ERRORS)
    expect(test.told).toEqual(['firing a1'])
    await test.lookAt(5 * MINUTE, ERRORS)
    expect(test.told).toEqual(['firing a1', 'reminder a1'])
  })

  it('of an alert that does not exist is none', async () => {
    const test = await firingMonitor()
    expect(test.monitor.silence('a2', { by: 'ada', durationMs: 1 })).toBeUndefined()
  })
})

describe('an channel that takes nothing', () => {
  it('is given the notice again with each look, until it takes it', async () => {
    const test = new TestMonitor()
    test.channel.takes = false
    await test.lookAt(0, ERRORS)
    await test.lookAt(1000, ERRORS)
    expect(test.told).toEqual(['firing a1', 'firing a1'])
    expect(test.channel.given[1]).toEqual(test.channel.given[0])
    test.channel.takes = true
    await test.lookAt(2000, ERRORS)
    await test.lookAt(3000, ERRORS)
    expect(test.told).toHaveLength(3)
  })

  it('is not given it twice at the same time', async () => {
    const channel = new TestChannel()
    const { promise, resolve } = Promise.withResolvers<boolean>()
    channel.send = (notice) => {
      channel.given.push(notice)
      return promise
    }
    const test = new TestMonitor({ channel })
    const late = test.lookAt(0, ERRORS)
    const later = test.lookAt(1000, ERRORS)
    expect(channel.given).toHaveLength(1)
    resolve(true)
    await Promise.all([late, later])
    expect(channel.given).toHaveLength(1)
  })

  it('does not make more than a hundred notices wait; the oldest go, and the log says so', async () => {
    const test = new TestMonitor({ rules: { 'store-errors': { resolveAfterSeconds: 0 } } })
    test.channel.takes = false
    for (let round = 0; round < 51; round++) {
      await test.lookAt(round * 1000, ERRORS)
      await test.lookAt(round * 1000 + 1)
    }
    test.channel.given.length = 0
    test.channel.takes = true
    await test.lookAt(MINUTE * 10)
    expect(test.told).toHaveLength(100)
    expect(test.told[0]).toBe('firing a2')
    const dropped = test.log.lines.filter(({ message }) => message === 'a notice of an alert was dropped')
    expect(dropped.map(({ fields }) => fields)).toEqual([{ notice: 'a1_firing' }, { notice: 'a1_resolved' }])
    expect(test.monitor.dropped).toBe(2)
  })
})

describe('after a restart', () => {
  /** A monitor that goes on with what another left, its time where that one's ended. */
  async function restarted(before: TestMonitor, store: TestStateStore, rules = {}): Promise<TestMonitor> {
    await before.monitor.settled()
    const test = new TestMonitor({ store, ids: 'b', rules })
    test.nowMs = before.nowMs
    return test
  }

  it('an alert that still fires is the same one, and is not sent again', async () => {
    const store = new TestStateStore()
    const before = await firingMonitor({ store })
    const test = await restarted(before, store)
    await test.lookAt(1000)
    await test.lookAt(2000, ERRORS)
    expect(test.monitor.list()).toMatchObject([{ id: 'a1', state: 'firing', firedAt: START_MS }])
    expect(test.told).toEqual([])
  })

  it('an alert that is gone is resolved when it has been gone for long enough since', async () => {
    const store = new TestStateStore()
    const before = await firingMonitor({ store })
    await before.lookAt(50_000)
    const test = await restarted(before, store)
    await test.lookAt(100_000)
    await test.lookAt(100_000 + MINUTE - 1)
    expect(test.told).toEqual([])
    await test.lookAt(100_000 + MINUTE)
    expect(test.told).toEqual(['resolved a1'])
  })

  it('what was pending starts over', async () => {
    const store = new TestStateStore()
    const before = new TestMonitor({ store })
    await before.lookAt(0, ERRORS)
    await before.lookAt(0, DENIALS)
    const test = await restarted(before, store)
    await test.lookAt(2 * MINUTE, DENIALS)
    expect(test.monitor.list()).toHaveLength(1)
    await test.lookAt(4 * MINUTE, DENIALS)
    expect(test.monitor.list()).toMatchObject([{ rule: 'denial-rate' }, {}])
  })

  it('silences and acknowledgements are there', async () => {
    const store = new TestStateStore()
    const before = await firingMonitor({ store })
    before.monitor.acknowledge('a1', { by: 'ada', note: 'mine' })
    before.monitor.silence('a1', { by: 'bob', durationMs: MINUTE })
    const test = await restarted(before, store)
    expect(test.monitor.list()).toEqual(before.monitor.list())
    expect(test.monitor.list()).toMatchObject([{ acknowledgedBy: 'ada', silencedBy: 'bob' }])
  })

  it('a notice that no channel took is given again, under the same id', async () => {
    const store = new TestStateStore()
    const before = new TestMonitor({ store })
    before.channel.takes = false
    await before.lookAt(0, ERRORS)
    const test = await restarted(before, store)
    await test.lookAt(1000, ERRORS)
    expect(test.channel.given).toEqual(before.channel.given)
    await test.lookAt(2000, ERRORS)
    expect(test.channel.given).toHaveLength(1)
  })

  it('the end of an alert whose rule is now disabled is sent', async () => {
    const store = new TestStateStore()
    const before = await firingMonitor({ store })
    const test = await restarted(before, store, { 'store-errors': { enabled: false } })
    await test.lookAt(1000, ERRORS)
    expect(test.monitor.list()).toMatchObject([{ state: 'resolved', resolvedAt: START_MS + 1000 }])
    expect(test.told).toEqual(['resolved a1'])
  })
})

describe('a store', () => {
  it('is written when something changes, and not with every look', async () => {
    const store = new TestStateStore()
    const test = await firingMonitor({ store })
    const writes = store.saved.length
    for (let second = 1; second < 30; second++) await test.lookAt(second * 1000, ERRORS)
    expect(store.saved).toHaveLength(writes)
  })

  it('has a notice from the moment of its change until the channel took it', async () => {
    const store = new TestStateStore()
    await firingMonitor({ store })
    const outboxes = store.saved.map((text) => JSON.parse(text).outbox.map(({ id }: { id: string }) => id))
    expect(outboxes).toEqual([['a1_firing'], []])
  })

  it('that fails is logged, and alerts are sent nevertheless', async () => {
    const store = new TestStateStore()
    store.fails = true
    const test = await firingMonitor({ store })
    expect(test.told).toEqual(['firing a1'])
    expect(test.log.messages).toContain('could not save the state of alerts')
  })
})

describe('the log', () => {
  it('says what fires, what is resolved, and who did what', async () => {
    const test = await firingMonitor()
    test.monitor.acknowledge('a1', { by: 'ada', note: 'mine' })
    test.monitor.silence('a1', { by: 'bob', durationMs: 5 })
    await test.lookAt(1000)
    await test.lookAt(1000 + MINUTE)
    expect(test.log.lines).toMatchObject([
      { level: 'warn', message: 'an alert fires', fields: { alert: 'a1', rule: 'store-errors', value: 0.02 } },
      { level: 'info', message: 'an alert was acknowledged', fields: { alert: 'a1', by: 'ada', note: 'mine' } },
      { level: 'info', message: 'an alert was silenced', fields: { alert: 'a1', by: 'bob', until: START_MS + 5 } },
      { level: 'info', message: 'an alert is resolved', fields: { alert: 'a1', rule: 'store-errors' } },
    ])
  })
})
