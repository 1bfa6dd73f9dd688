import { describe, expect, it } from 'vitest'
import { RetryBudget } from './retry-budget.ts'
import { attemptOn, fakeUpstream, instancesOf, OK } from './upstreams.test.support.ts'

function budgetAt(startMs = 1_000_000) {
  const time = { nowMs: startMs }
  const budget = new RetryBudget()
  const request = (count: number): void => {
    for (let index = 0; index < count; index++) budget.countRequest(time.nowMs)
  }
  const take = (count: number, share = 0.2): number => {
    let taken = 0
    for (let index = 0; index < count; index++) if (budget.take(share, time.nowMs)) taken++
    return taken
  }
  return { budget, time, request, take }
}

describe('the retry budget', () => {
  it('allows the share of the requests of the last 10 seconds, exactly', () => {
    const { budget, request, take } = budgetAt()
    request(1000)
    expect(take(500)).toBe(200)
    expect([budget.taken, budget.denied]).toEqual([200, 300])
    request(5)
    expect(take(10)).toBe(1)
  })

  it('allows 10 retries whatever the number of requests, and none with a share of 0', () => {
    const { request, take } = budgetAt()
    request(1)
    expect(take(20, 0)).toBe(0)
    expect(take(20)).toBe(10)
  })

  it('forgets requests and retries after 10 seconds', () => {
    const { time, request, take } = budgetAt()
    request(1000)
    expect(take(300)).toBe(200)
    time.nowMs += 5000
    request(500)
    // 1,500 requests and 200 retries are in the window.
    expect(take(300)).toBe(100)
    time.nowMs += 5000
    // 500 requests and 100 retries are left.
    expect(take(300)).toBe(0)
    request(100)
    expect(take(300)).toBe(20)
    time.nowMs += 10_000
    expect(take(300)).toBe(10)
  })

  it('counts first attempts, not retries', () => {
    const { upstream } = fakeUpstream({ instances: instancesOf(2) })
    for (let request = 0; request < 100; request++) {
      const first = attemptOn(upstream)
      first.finish(OK)
      attemptOn(upstream, {}, new Set([first.instance])).finish(OK)
    }
    const taken = Array.from({ length: 60 }, () => upstream.takeRetry(0.5)).filter(Boolean).length
    expect(taken).toBe(50)
    expect(upstream.stats().retries).toEqual({ taken: 50, denied: 10 })
  })
})
