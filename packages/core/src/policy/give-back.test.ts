import { FakeClock } from '@sluice/testing'
import { expect, it } from 'vitest'
import { memoryStore } from '../store/memory/memory-store.ts'
import { PolicyEngine } from './policy-engine.ts'
import type { RuleSet } from './rule-set/rule-set.ts'

const RULES: RuleSet = {
  rules: [
    {
      resource: '/orders',
      dimension: 'user',
      windows: [
        { limit: 3, window: '1s' },
        { limit: 5, window: '1m' },
      ],
    },
    { resource: '/jobs', dimension: 'user', algorithm: 'concurrency', limit: 1, lease: '1m' },
    { resource: '/turns', dimension: 'user', algorithm: 'leaky-bucket-queue', capacity: 2, ratePerSecond: 1 },
  ],
}

const CALL = { resource: '/orders', user: 'ada' }

function startedEngine(): PolicyEngine<'sync'> {
  const clock = new FakeClock()
  return new PolicyEngine({ store: memoryStore({ clock }), clock, ruleSet: RULES })
}

function admitted(engine: PolicyEngine<'sync'>, calls: number): number {
  return Array.from({ length: calls }, () => engine.check(CALL)).filter(({ allowed }) => allowed).length
}

it('gives back units under every window, and no more than were used', async () => {
  const engine = startedEngine()
  expect(admitted(engine, 9)).toBe(3)
  expect(await engine.giveBack(CALL, 2)).toEqual([
    { rule: '/orders@user', resource: '/orders', dimension: 'user', entity: 'ada' },
  ])
  expect(admitted(engine, 9)).toBe(2)
  await engine.giveBack(CALL, 1000)
  expect(admitted(engine, 9)).toBe(3)
})

it('leaves slots and turns in a queue alone', async () => {
  const engine = startedEngine()
  const changed = await engine.giveBack({ user: 'ada' }, 1)
  expect(changed.map(({ rule }) => rule)).toEqual(['/orders@user'])
})

it('rejects units that are none', async () => {
  await expect(startedEngine().giveBack(CALL, 0)).rejects.toMatchObject({ code: 'SLUICE_INVALID_OPTION' })
})
