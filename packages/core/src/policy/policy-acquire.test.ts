import { FakeClock, FakeTimers, seededRandom } from '@sluice/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { memoryStore } from '../store/memory/memory-store.ts'
import { PolicyEngine } from './policy-engine.ts'
import type { PolicyAcquireOptions, PolicyEngineOptions } from './policy-engine-options.ts'
import type { PolicyRequest } from './rule-set/policy-request.ts'
import type { RuleSet } from './rule-set/rule-set.ts'

const JOBS: RuleSet = {
  rules: [
    {
      name: 'jobs',
      resource: '/jobs',
      dimension: 'tenant',
      algorithm: 'concurrency',
      limit: 1,
      lease: '1h',
      penalty: { after: 2, within: '1h', block: '1h' },
    },
    { name: 'calls', resource: '/calls', dimension: 'tenant', algorithm: 'fixed-window', limit: 1, window: '1h' },
  ],
}
const JOB = { resource: '/jobs', tenant: 'acme' } as const

let clock: FakeClock
let timers: FakeTimers
let log: string[]

beforeEach(() => {
  clock = new FakeClock()
  timers = new FakeTimers(clock)
  log = []
})

// Whatever happened, no caller may be left waiting for a timer.
afterEach(() => expect(timers.pending).toBe(0))

function engineOf(options: Partial<PolicyEngineOptions<'sync'>> = {}): PolicyEngine<'sync'> {
  const random = seededRandom(1)
  return new PolicyEngine({ store: memoryStore({ clock, random }), clock, timers, random, ruleSet: JOBS, ...options })
}

/** Starts waiting, and notes in the log when and how it ended. */
function start(
  engine: PolicyEngine<'sync'>,
  name: string,
  { request = JOB, ...options }: PolicyAcquireOptions & { request?: PolicyRequest } = {},
): void {
  const startedAt = clock.nowMicros()
  const note = (what: string): void => void log.push(`${name} ${what} after ${(clock.nowMicros() - startedAt) / 1000}`)
  engine.acquire(request, options).then(
    (taken) => note('claim' in taken ? 'let in' : `denied (${taken.reason})`),
    (reason: unknown) => note(`ended (${String(reason)})`),
  )
}

/** Takes the only slot. Returns a function that gives it back. */
function held(engine: PolicyEngine<'sync'>): () => void {
  const taken = engine.reserve(JOB)
  if (!('claim' in taken)) throw new Error('There is no slot.')
  return () => void taken.release()
}

describe('acquire of an engine', () => {
  it('is let in at the instant of a release, in the order of arrival', async () => {
    const engine = engineOf()
    const release = held(engine)
    for (const name of ['a', 'b']) start(engine, name)
    await timers.advance(107)
    expect(log).toEqual([])
    release()
    await timers.advance(0)
    expect(log).toEqual(['a let in after 107'])
    await engine.reset({ tenant: 'acme' })
    await timers.advance(0)
    expect(log).toEqual(['a let in after 107', 'b let in after 107'])
  })

  it('is let in when a claim is settled, as another process would', async () => {
    const engine = engineOf()
    const taken = engine.reserve(JOB)
    start(engine, 'a')
    await timers.advance(50)
    if ('claim' in taken) engine.settle(taken.claim, 1)
    await timers.advance(0)
    expect(log).toEqual(['a let in after 50'])
  })

  it('does not let one caller wait for another, nor those who need not wait', async () => {
    const engine = engineOf({ ruleSet: { ...JOBS, exemptions: [{ name: 'ops', match: { services: ['cron'] } }] } })
    held(engine)
    start(engine, 'busy', { maxWait: '1s' })
    start(engine, 'idle', { request: { ...JOB, tenant: 'other' } })
    start(engine, 'exempt', { request: { ...JOB, service: 'cron' } })
    start(engine, 'unlimited', { request: { resource: '/free' } })
    await timers.advance(0)
    expect(log.toSorted()).toEqual(['exempt', 'idle', 'unlimited'].map((name) => `${name} let in after 0`))
    await timers.advance(1000)
    expect(log[3]).toBe('busy denied (limit) after 1000')
  })

  it('counts one denial for a wait in vain, and none for one that ends well', async () => {
    const engine = engineOf()
    const release = held(engine)
    start(engine, 'a', { maxWait: '5s' })
    await timers.advance(5000)
    start(engine, 'b')
    await timers.advance(5000)
    release()
    await timers.advance(0)
    expect(log).toEqual(['a denied (limit) after 5000', 'b let in after 5000'])
    expect(engine.entries.blocks()).toEqual([])
    // The second denial leads to a block.
    start(engine, 'c', { maxWait: '1s' })
    await timers.advance(1000)
    expect(engine.entries.blocks()).toHaveLength(1)
  })

  it('waits for units until they come back, and denies at once what is known to take longer', async () => {
    const engine = engineOf()
    const request = { resource: '/calls', tenant: 'acme' }
    engine.check(request)
    start(engine, 'hurried', { request, maxWait: '59m' })
    await timers.advance(0)
    expect(log).toEqual(['hurried denied (limit) after 0'])
    start(engine, 'patient', { request })
    await timers.advance(3_600_000)
    expect(log[1]).toBe('patient let in after 3600000')
  })

  it('follows a changed rule set within a second', async () => {
    const engine = engineOf()
    const request = { resource: '/calls', tenant: 'acme' }
    engine.check(request)
    start(engine, 'a', { request })
    await timers.advance(10_000)
    engine.use({ enforced: { number: 1, ruleSet: { rules: [] } } })
    await timers.advance(1000)
    expect(log).toEqual(['a let in after 11000'])
  })

  it('does not wait where that does not help, nor beside too many', async () => {
    const engine = engineOf({ maxWaiting: 1 })
    held(engine)
    start(engine, 'large', { request: { ...JOB, cost: 2 } })
    await timers.advance(0)
    start(engine, 'first', { maxWait: '1s' })
    start(engine, 'second')
    await timers.advance(0)
    expect(log).toEqual(['large denied (never) after 0', 'second denied (limit) after 0'])
    await timers.advance(1000)
    expect(log[2]).toBe('first denied (limit) after 1000')
    expect(() => engineOf({ maxWaiting: -1 })).toThrow(expect.objectContaining({ code: 'SLUICE_INVALID_OPTION' }))
  })

  it('an abort ends the wait, and takes nothing', async () => {
    const engine = engineOf()
    const release = held(engine)
    const controller = new AbortController()
    start(engine, 'a', { signal: controller.signal })
    start(engine, 'b', { signal: AbortSignal.abort('too late') })
    await timers.advance(20)
    controller.abort('no')
    await timers.advance(0)
    release()
    expect(log).toEqual(['b ended (too late) after 0', 'a ended (no) after 20'])
    expect(engine.peek(JOB)).toMatchObject({ allowed: true })
  })
})
