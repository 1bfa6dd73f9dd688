import { describe, expect, it } from 'vitest'
import type { AlertRecord } from './alert-record.ts'
import { dueNotice, noticeId, noticeText, withTold } from './alert-record.ts'

const FIRING: AlertRecord = {
  id: 'a1',
  rule: 'denial-rate',
  scope: 'node',
  node: 'node-1',
  state: 'firing',
  summary: 'too much',
  value: 0.3,
  threshold: 0.2,
  unit: 'ratio',
  firedAt: 1000,
  reminders: 0,
}
const TOLD: AlertRecord = { ...FIRING, told: { state: 'firing', at: 1000 } }
const OVER: AlertRecord = { ...TOLD, state: 'resolved', resolvedAt: 2000 }

const times = (nowMs: number, more = {}) => ({ nowMs, isSilent: false, remindEveryMs: 0, ...more })

describe('what has to be told', () => {
  it.each<[string, AlertRecord, ReturnType<typeof times>, string | undefined]>([
    ['one that began', FIRING, times(1000), 'firing'],
    ['one that began in a silence', FIRING, times(1000, { isSilent: true }), undefined],
    ['one that was told', TOLD, times(9_000_000), undefined],
    ['one that is over', OVER, times(2000), 'resolved'],
    ['one that is over in a silence', OVER, times(2000, { isSilent: true }), undefined],
    ['one that is over and was told to be', withTold(OVER, 'resolved', 2000), times(2001), undefined],
    ['one that is resolved and was never reported', { ...FIRING, state: 'resolved' }, times(2000), undefined],
    ['a reminder before its time', TOLD, times(60_999, { remindEveryMs: 60_000 }), undefined],
    ['a reminder at its time', TOLD, times(61_000, { remindEveryMs: 60_000 }), 'reminder'],
    ['a reminder in a silence', TOLD, times(61_000, { remindEveryMs: 60_000, isSilent: true }), undefined],
    [
      'a reminder of one that is looked after',
      { ...TOLD, acknowledgement: { at: 1, by: 'ops' } },
      times(61_000, { remindEveryMs: 60_000 }),
      undefined,
    ],
    [
      'a reminder after the clock was set back',
      { ...TOLD, told: { state: 'firing', at: 9_000_000 } },
      times(1000, { remindEveryMs: 60_000 }),
      'reminder',
    ],
    ['one that is over and was to be reminded of', OVER, times(61_000, { remindEveryMs: 60_000 }), 'resolved'],
  ])('about %s', (_, record, when, kind) => {
    expect(dueNotice(record, when)).toBe(kind)
  })

  it('has its own id for every change and every reminder', () => {
    expect(noticeId(FIRING, 'firing')).toBe('a1_firing')
    expect(noticeId(TOLD, 'reminder')).toBe('a1_reminder_1')
    expect(noticeId(withTold(TOLD, 'reminder', 5000), 'reminder')).toBe('a1_reminder_2')
    expect(noticeId(OVER, 'resolved')).toBe('a1_resolved')
  })

  it('is remembered as told, with its instant', () => {
    expect(withTold(FIRING, 'firing', 1500)).toEqual({ ...FIRING, told: { state: 'firing', at: 1500 } })
    expect(withTold(TOLD, 'reminder', 5000)).toEqual({ ...TOLD, told: { state: 'firing', at: 5000 }, reminders: 1 })
  })

  it('says in one line what it is about', () => {
    expect(noticeText('firing', FIRING)).toBe('Alert: denial-rate on node-1: too much.')
    expect(noticeText('reminder', FIRING)).toBe('Alert, still: denial-rate on node-1: too much.')
    expect(noticeText('resolved', OVER)).toBe('Resolved: denial-rate on node-1. It was: too much.')
    expect(noticeText('firing', { ...FIRING, scope: 'cluster' })).toBe(
      'Alert: denial-rate in the cluster, first seen on node-1: too much.',
    )
  })
})
