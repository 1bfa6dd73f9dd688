import type { ConfigEvent } from '@sluice/config-store'
import type { PolicyEvent } from '@sluice/core/policy'
import { keyDigest } from '@sluice/runtime'
import { FakeClock } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import type { EventLogParts } from './event-log.ts'
import { EventLog } from './event-log.ts'
import { captureLog, SECRET } from './observability.test.support.ts'

function scene(redis?: EventLogParts['redis']) {
  const clock = new FakeClock()
  const log = captureLog(clock)
  const events = new EventLog({ log: log.logger, nowMs: () => clock.nowMicros() / 1000, secret: SECRET, redis })
  return { clock, log, events }
}

const BLOCK = { dimension: 'user', entity: 'ann', until: 5000, strikes: 2, forgottenAt: 9000, reason: 'ann did it' }

describe('EventLog', () => {
  const LATE = { type: 'failed', cause: 'deadline', charged: 'unknown', error: undefined } as const
  const BROKEN = { type: 'failed', cause: 'unreachable', charged: 'unknown', error: new Error('broken') } as const
  const ANSWERED = { type: 'asked', micros: 5, outcome: 'answered' } as const

  it('logs once that Redis is unavailable and once that it is available, with its URL and without a password', () => {
    const urls = ['redis://user:hunter2@one:6379', 'redis://user:hunter2@two:6379']
    const { clock, log, events } = scene({ urls, failureMode: 'local' })
    for (let minute = 0; minute < 60; minute++) {
      for (let call = 0; call < 10; call++) events.store(BROKEN)
      events.store({ type: 'breaker', state: 'open' })
      events.store({ type: 'failed', cause: 'breaker', charged: 'no', error: undefined })
      events.store({ type: 'breaker', state: 'half-open' })
      events.store(LATE)
      clock.advance(60_000)
    }
    expect(log.lines).toHaveLength(1)
    events.store({ type: 'breaker', state: 'closed' })
    events.store(ANSWERED)
    events.store(ANSWERED)
    const redis = 'redis://one:6379, redis://two:6379'
    expect(log.entries()).toMatchObject([
      {
        level: 'warn',
        message: 'Redis is unavailable: failure modes decide',
        ...{ redis, failureMode: 'local', cause: 'unreachable', error: { name: 'Error', message: 'broken' } },
      },
      { level: 'warn', message: 'Redis is available again', redis, afterMs: 3_600_000 },
    ])
    events.store({ type: 'breaker', state: 'open' })
    expect(log.entries()[2]).toMatchObject({ message: 'Redis is unavailable: failure modes decide' })
    expect(log.lines.join('')).not.toContain('hunter2')
  })

  it('does not call Redis back while a part of it still fails, whatever the rest answers', () => {
    const { clock, log, events } = scene()
    for (let call = 0; call < 100; call++) {
      events.store(BROKEN)
      clock.advance(999)
      events.store(ANSWERED)
    }
    expect(log.lines).toHaveLength(1)
    clock.advance(1)
    events.store(ANSWERED)
    expect(log.entries()[1]).toMatchObject({ message: 'Redis is available again' })
    // A clock that was set back does not keep it lost.
    events.store(BROKEN)
    clock.setMicros(clock.nowMicros() - 60_000_000)
    events.store(ANSWERED)
    expect(log.lines).toHaveLength(4)
  })

  it('reports single answers that are late once in ten seconds: they are no loss', () => {
    const { clock, log, events } = scene()
    for (let call = 0; call < 1000; call++) {
      events.store(LATE)
      events.store(ANSWERED)
    }
    clock.advance(9999)
    events.store(LATE)
    expect(log.lines).toHaveLength(1)
    clock.advance(1)
    events.store(LATE)
    expect(log.lines).toHaveLength(2)
    clock.setMicros(clock.nowMicros() - 60_000_000)
    events.store(LATE)
    expect(log.lines).toHaveLength(3)
    expect(log.entries()[0]).toMatchObject({
      level: 'warn',
      message: 'Redis did not answer in time',
      cause: 'deadline',
    })
  })

  it('has nothing to say of a store that is not asked, of answers, and of what was measured', () => {
    const { log, events } = scene()
    events.store({ type: 'failed', cause: 'breaker', charged: 'no', error: undefined })
    events.store({ type: 'asked', micros: 5, outcome: 'answered' })
    events.store({ type: 'fell-back', mode: 'open', rule: 'r' })
    events.store({ type: 'remembered', rule: 'r' })
    events.policy({ type: 'shadow', rule: 'r', dimension: 'user', allowed: true, version: 0 })
    events.lease({ type: 'lease-granted', rule: 'r', units: 5 })
    expect(log.lines).toEqual([])
  })

  it('names callers by digests', () => {
    const { log, events } = scene()
    const caller = keyDigest('ann', Buffer.from(SECRET).toString('hex'))
    const happened: PolicyEvent[] = [
      { type: 'blocked', block: BLOCK },
      { type: 'block-not-kept', block: { ...BLOCK, rule: 'r' }, error: new Error('away') },
    ]
    for (const event of happened) events.policy(event)
    expect(log.entries()).toMatchObject([
      { level: 'info', message: 'a caller was blocked', dimension: 'user', caller, until: 5000, strikes: 2 },
      { level: 'error', caller, rule: 'r', error: { message: 'away' } },
    ])
    expect(log.lines.join('')).not.toContain('ann')
  })

  it.each<[PolicyEvent, string]>([
    [{ type: 'shadow-failed', error: new Error('e') }, 'could not measure a shadow rule'],
    [{ type: 'penalty-failed', error: new Error('e') }, 'could not count a denial for a penalty'],
    [
      { type: 'override-unusable', rule: 'r', terms: { limit: 5 }, problem: 'no window' },
      'could not apply an override to a rule',
    ],
    [
      { type: 'burst-unusable', rule: 'r', tiers: ['gold'], problem: 'no room', version: 3 },
      'could not add the burst of a tier to a rule',
    ],
  ])('warns of %j once', (event, message) => {
    const { log, events } = scene()
    events.policy(event)
    events.policy(event)
    expect(log.entries()).toMatchObject([{ level: 'warn', message }])
  })

  it('warns of leases that fail', () => {
    const { log, events } = scene()
    events.lease({ type: 'lease-failed', rule: 'r', error: new Error('e') })
    expect(log.entries()).toMatchObject([{ level: 'warn', rule: 'r', error: { message: 'e' } }])
  })

  it.each<[ConfigEvent, Record<string, unknown>]>([
    [
      {
        type: 'refreshed',
        source: 'database',
        enforcedVersion: 3,
        candidateVersion: undefined,
        changes: 2,
        reloaded: true,
      },
      { level: 'info', source: 'database', enforcedVersion: 3, changes: 2, reloaded: true },
    ],
    [
      { type: 'refused', version: 4, error: new Error('bad') },
      { level: 'error', version: 4, error: { message: 'bad' } },
    ],
    [
      { type: 'unavailable', error: new Error('away') },
      { level: 'warn', error: { message: 'away' } },
    ],
    [
      { type: 'recovered', afterMs: 700 },
      { level: 'warn', afterMs: 700 },
    ],
    [
      { type: 'hints-lost', error: new Error('cut') },
      { level: 'warn', error: { message: 'cut' } },
    ],
    [
      { type: 'cache-failed', error: new Error('full') },
      { level: 'warn', error: { message: 'full' } },
    ],
    [
      { type: 'cache-refused', reason: 'of another database' },
      { level: 'warn', reason: 'of another database' },
    ],
  ])('writes one line of %j', (event, line) => {
    const { log, events } = scene()
    events.config(event)
    expect(log.entries()).toHaveLength(1)
    expect(log.entries()[0]).toMatchObject(line)
  })
})
