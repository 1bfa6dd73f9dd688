import { FakeClock, FakeTimers } from '@sluice/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DeadlineQueue, type WaitingCall } from './deadline-queue.ts'

function scene(deadlineMs = 50) {
  const clock = new FakeClock(0)
  const timers = new FakeTimers(clock)
  const monotonicMs = () => clock.nowMicros() / 1000
  const line = new DeadlineQueue({ deadlineMs, timers, monotonicMs })
  const expired: { name: string; atMs: number }[] = []
  const call = (name: string): WaitingCall => ({
    sentMs: 0,
    older: undefined,
    newer: undefined,
    expire: (atMs) => void expired.push({ name, atMs }),
  })
  const add = (name: string) => {
    const added = call(name)
    line.add(added, monotonicMs())
    return added
  }
  return { clock, timers, line, expired, add }
}

describe('a line of deadlines', () => {
  it('ends each call when its own deadline comes, with one timer for all', async () => {
    const { timers, line, expired, add } = scene()
    add('a')
    add('b')
    await timers.advance(20)
    add('c')
    expect(timers.pending).toBe(1)
    await timers.advance(100)
    expect(expired).toEqual([
      { name: 'a', atMs: 50 },
      { name: 'b', atMs: 50 },
      { name: 'c', atMs: 70 },
    ])
    expect([line.size, timers.pending]).toEqual([0, 0])
  })

  it('does not end a call that has left', async () => {
    const { timers, line, expired, add } = scene()
    const calls = ['a', 'b', 'c', 'd'].map(add)
    for (const index of [1, 0, 3]) line.remove(calls[index]!)
    expect(line.size).toBe(1)
    await timers.advance(50)
    expect(expired.map(({ name }) => name)).toEqual(['c'])
  })

  it('lets go of what has left: a call that hangs for ever does not keep the others', () => {
    const { line, add } = scene()
    const [first, second, third] = [add('a'), add('b'), add('c')]
    line.remove(second)
    expect(second).toMatchObject({ older: undefined, newer: undefined })
    expect([first.newer, third.older]).toEqual([third, first])
    line.close()
  })

  it('is not early for a call that came after the one the timer was set for', async () => {
    const { timers, line, expired, add } = scene()
    line.remove(add('a'))
    await timers.advance(49)
    add('b')
    await timers.advance(49)
    expect(expired).toEqual([])
    await timers.advance(1)
    expect(expired).toEqual([{ name: 'b', atMs: 99 }])
  })

  it('lets answers in first when the thread was busy', async () => {
    const { clock, timers, line, expired, add } = scene()
    const answered = add('a')
    add('b')
    clock.advance(200)
    timers.schedule(0, () => line.remove(answered))
    await timers.advance(0)
    expect(expired).toEqual([{ name: 'b', atMs: 200 }])
  })

  it('holds no timer when it is closed', () => {
    const { timers, line, add } = scene()
    add('a')
    line.close()
    expect(timers.pending).toBe(0)
    expect(line.shift()?.sentMs).toBe(0)
    expect(line.shift()).toBeUndefined()
  })

  it('ends all that do not leave, in order, whatever comes and goes', async () => {
    const step = fc.record({ kind: fc.constantFrom('add', 'remove', 'wait'), amount: fc.nat(30) })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const { clock, timers, line, expired, add } = scene(20)
        const waiting = new Map<string, { call: WaitingCall; dueMs: number }>()
        const expected: { name: string; atMs: number }[] = []
        const settle = () => {
          for (const [name, { dueMs }] of waiting) {
            if (dueMs > clock.nowMicros() / 1000) continue
            expected.push({ name, atMs: dueMs })
            waiting.delete(name)
          }
        }
        for (const [index, { kind, amount }] of steps.entries()) {
          if (kind === 'add') waiting.set(`${index}`, { call: add(`${index}`), dueMs: clock.nowMicros() / 1000 + 20 })
          if (kind === 'wait') await timers.advance(amount)
          settle()
          const chosen = [...waiting][amount % Math.max(1, waiting.size)]
          if (kind !== 'remove' || chosen === undefined) continue
          line.remove(chosen[1].call)
          waiting.delete(chosen[0])
        }
        await timers.advance(20)
        settle()
        expect(expired).toEqual(expected)
        expect([line.size, timers.pending]).toEqual([0, 0])
      }),
    )
  })
})
