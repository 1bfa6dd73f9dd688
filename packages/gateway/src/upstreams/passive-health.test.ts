import { describe, expect, it } from 'vitest'
import {
  attemptOn,
  CANCELLED,
  countsOf,
  FAILURE,
  fakeUpstream,
  instancesOf,
  noInstanceOf,
  OK,
  urlOf,
} from './upstreams.test.support.ts'

const UNAVAILABLE = { kind: 'response', status: 503, headersMs: 1 } as const

describe('the breaker of an instance', () => {
  it('opens after the configured failures in a row; a dead one of two is called once per pause', async () => {
    const { upstream, timers, lines } = fakeUpstream({
      instances: instancesOf(2),
      health: { passive: { failures: 3, pause: 1000 } },
    })
    let failures = 0
    const send = (): void => {
      const attempt = attemptOn(upstream)
      const isDead = attempt.instance === urlOf(1)
      if (isDead) failures++
      attempt.finish(isDead ? FAILURE : OK)
    }
    for (let request = 0; request < 100; request++) send()
    expect(failures).toBe(3)
    expect(lines.map(({ message }) => message)).toEqual(['instance of an upstream failed'])
    expect(upstream.stats().instances.map(({ breaker }) => breaker)).toEqual(['open', 'closed'])
    // Pauses of 1, 2, 4, 8, 10, 10 seconds, each with up to a quarter more or less.
    for (let step = 0; step < 350; step++) {
      await timers.advance(100)
      for (let request = 0; request < 4; request++) send()
    }
    expect(failures).toBeGreaterThanOrEqual(3 + 4)
    expect(failures).toBeLessThanOrEqual(3 + 7)
  })

  it('admits one probe; its success closes the breaker', async () => {
    const { upstream, timers } = fakeUpstream({
      instances: instancesOf(1),
      health: { passive: { failures: 1, pause: 1000 } },
    })
    attemptOn(upstream).finish(FAILURE)
    expect(upstream.isAvailable).toBe(false)
    expect(noInstanceOf(upstream)).toEqual({ reason: 'no-healthy-instance', retryAfterSeconds: 1 })
    await timers.advance(1250)
    expect(upstream.isAvailable).toBe(true)
    const probe = attemptOn(upstream)
    expect(upstream.stats().instances[0]!.breaker).toBe('half-open')
    expect(noInstanceOf(upstream).reason).toBe('no-healthy-instance')
    probe.finish(OK)
    expect(upstream.stats().instances[0]!.breaker).toBe('closed')
    expect(countsOf(upstream, 5)).toEqual({ [urlOf(1)]: 5 })
  })

  it('is not moved by clients that leave; a probe that is cancelled is tried again by the next request', async () => {
    const { upstream, timers } = fakeUpstream({
      instances: instancesOf(1),
      health: { passive: { failures: 1, pause: 1000 } },
    })
    for (let request = 0; request < 50; request++) attemptOn(upstream).finish(CANCELLED)
    attemptOn(upstream).finish(FAILURE)
    await timers.advance(1250)
    attemptOn(upstream).finish(CANCELLED)
    attemptOn(upstream).finish(OK)
    expect(upstream.stats().instances[0]).toMatchObject({ breaker: 'closed', requests: 53, failures: 1 })
  })

  it('counts 502, 503 and 504 as failures while another instance can take over', () => {
    const config = { instances: instancesOf(2), health: { passive: { failures: 3 } } }
    const { upstream } = fakeUpstream(config)
    for (let request = 0; request < 6; request++) {
      const attempt = attemptOn(upstream)
      attempt.finish(attempt.instance === urlOf(1) ? UNAVAILABLE : OK)
    }
    expect(countsOf(upstream, 10)).toEqual({ [urlOf(2)]: 10 })
    // The last one stays: its 503 says more than one of the gateway.
    for (let request = 0; request < 10; request++) attemptOn(upstream).finish(UNAVAILABLE)
    expect(upstream.isAvailable).toBe(true)
  })

  it('says when to come back: when the first breaker lets a probe through', () => {
    const { upstream } = fakeUpstream({
      instances: instancesOf(1),
      health: { passive: { failures: 1, pause: '4s' } },
    })
    attemptOn(upstream).finish(FAILURE)
    const { retryAfterSeconds } = noInstanceOf(upstream)
    expect(retryAfterSeconds).toBeGreaterThanOrEqual(3)
    expect(retryAfterSeconds).toBeLessThanOrEqual(5)
    expect(upstream.stats().turnedAway).toEqual({ noHealthyInstance: 1, noCapacity: 0 })
  })
})

it('an attempt is finished once', () => {
  const { upstream } = fakeUpstream({ instances: instancesOf(1) })
  const attempt = attemptOn(upstream)
  attempt.finish(OK)
  expect(() => attempt.finish(OK)).toThrow('finished twice')
  expect(upstream.stats().instances[0]!.inFlight).toBe(0)
})
