import { memoryStore } from '@sluice/core'
import type { PolicyDecision, PolicyVersions, RuleSet } from '@sluice/core/policy'
import { PolicyEngine } from '@sluice/core/policy'
import { deferredStore, FakeClock, seededRandom } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import type { CheckObserver } from './instrument.ts'
import { ObservedEngine } from './instrument.ts'

const RULES: RuleSet = {
  rules: [{ name: 'r', resource: '/data', dimension: 'user', limit: 2, window: '1m' }],
  domains: [{ domain: 'shop', descriptors: [{ key: 'k', limit: { unit: 'minute', requestsPerUnit: 1 } }] }],
}

const REQUEST = { resource: '/data', user: 'u' }

class Told implements CheckObserver {
  readonly calls: string[] = []
  used({ enforced }: PolicyVersions): void {
    this.calls.push(`used ${enforced?.number}`)
  }
  checked(request: { readonly user?: string }, { reason }: PolicyDecision, durationMs: number): void {
    this.calls.push(`${request.user} ${reason} ${durationMs}`)
  }
  checkedDescriptors(domain: string, { code }: { readonly code: string }, durationMs: number): void {
    this.calls.push(`${domain} ${code} ${durationMs}`)
  }
  failed(): void {
    this.calls.push('failed')
  }
}

function parts() {
  const clock = new FakeClock()
  const random = seededRandom(1)
  let now = 0
  // Each span between two looks is longer than the one before: 1, 2, 3, ...
  let step = 0
  const monotonicMs = (): number => {
    now += step++
    return now
  }
  const observer = new Told()
  return { clock, random, observer, monotonicMs, store: memoryStore({ clock, random }) }
}

describe('ObservedEngine', () => {
  it('answers as the engine does, at once, and reports each decision', () => {
    const { observer, monotonicMs, ...options } = parts()
    const engine = new ObservedEngine<'sync'>({ ...options, ruleSet: RULES }, { observer, monotonicMs })
    const plain = new PolicyEngine<'sync'>({
      ...options,
      store: memoryStore({ clock: options.clock, random: seededRandom(1) }),
      ruleSet: RULES,
    })
    for (let call = 0; call < 3; call++) expect(engine.check(REQUEST)).toEqual(plain.check(REQUEST))
    expect(observer.calls).toEqual(['used 0', 'u allowed 1', 'u allowed 3', 'u limit 5'])
  })

  it('times every decision on a local store', () => {
    const { observer, monotonicMs, ...options } = parts()
    const engine = new ObservedEngine<'sync'>({ ...options, ruleSet: { rules: [] } }, { observer, monotonicMs })
    for (let call = 0; call < 33; call++) engine.check(REQUEST)
    const durations = observer.calls.slice(1).map((call) => Number(call.split(' ')[2]))
    // The span before a decision is even, the one it takes is odd.
    expect(durations).toEqual(Array.from({ length: 33 }, (_, call) => 2 * call + 1))
  })

  it('reports reservations and descriptors, but no read-only calls', async () => {
    const { observer, monotonicMs, ...options } = parts()
    const engine = new ObservedEngine<'sync'>({ ...options, ruleSet: RULES }, { observer, monotonicMs })
    const taken = engine.reserve({ ...REQUEST, cost: 2 })
    expect('claim' in taken && taken.decision.allowed).toBe(true)
    expect(engine.reserve(REQUEST).allowed).toBe(false)
    engine.decideDescriptors({ domain: 'shop', descriptors: [{ entries: [{ key: 'k', value: 'v' }] }] })
    engine.decideDescriptors({ domain: 'shop', descriptors: [{ entries: [{ key: 'k', value: 'v' }] }] })
    engine.peek(REQUEST)
    engine.explain(REQUEST)
    engine.usage({ user: 'u' })
    await engine.reset({ user: 'u' })
    expect(observer.calls).toEqual(['used 0', 'u allowed 1', 'u limit 3', 'shop ok 5', 'shop over 7'])
  })

  it('reports decisions of a remote store when they are there, each with its own time', async () => {
    const { observer, monotonicMs, store, ...options } = parts()
    const remote = deferredStore(store)
    const engine = new ObservedEngine<'async'>({ ...options, store: remote, ruleSet: RULES }, { observer, monotonicMs })
    const first = engine.check(REQUEST)
    const second = engine.check(REQUEST)
    expect(observer.calls).toEqual(['used 0'])
    expect((await Promise.all([first, second])).map(({ remaining }) => remaining)).toEqual([1, 0])
    expect(observer.calls.slice(1)).toEqual(['u allowed 3', 'u allowed 5'])
  })

  it('reports errors and passes them on, thrown or rejected', async () => {
    const { observer, monotonicMs, store, ...options } = parts()
    const local = new ObservedEngine<'sync'>({ ...options, store, ruleSet: RULES }, { observer, monotonicMs })
    expect(() => local.check({ resource: '' })).toThrow('SLUICE_INVALID_OPTION')
    expect(() => local.reserve({ resource: '' })).toThrow('SLUICE_INVALID_OPTION')
    const remote = deferredStore(store)
    const engine = new ObservedEngine<'async'>({ ...options, store: remote, ruleSet: RULES }, { observer, monotonicMs })
    await store.close()
    await expect(engine.check(REQUEST)).rejects.toThrow('SLUICE_CLOSED')
    expect(observer.calls.filter((call) => call === 'failed')).toHaveLength(3)
  })

  it('decides although the observer throws', async () => {
    const { observer: _, monotonicMs, store, ...options } = parts()
    const fail = (): never => {
      throw new Error('cannot count')
    }
    const observer = { used: () => undefined, checked: fail, checkedDescriptors: fail, failed: fail }
    const local = new ObservedEngine<'sync'>({ ...options, store, ruleSet: RULES }, { observer, monotonicMs })
    expect(local.check(REQUEST).allowed).toBe(true)
    expect(local.reserve(REQUEST).allowed).toBe(true)
    expect(() => local.check({ resource: '' })).toThrow('SLUICE_INVALID_OPTION')
    const remote = deferredStore(store)
    const engine = new ObservedEngine<'async'>({ ...options, store: remote, ruleSet: RULES }, { observer, monotonicMs })
    expect((await engine.check(REQUEST)).allowed).toBe(false)
  })

  it('says nothing of rules that were rejected', () => {
    const { observer, monotonicMs, ...options } = parts()
    const engine = new ObservedEngine<'sync'>(options, { observer, monotonicMs })
    const broken = { rules: [{ resource: '', dimension: 'user', limit: 1, window: '1m' }] } as const
    expect(() => engine.use({ enforced: { number: 3, ruleSet: broken } })).toThrow('SLUICE_INVALID_RULE_SET')
    expect(observer.calls).toEqual([])
  })
})
