import type { ErrorRateCut, RuleSet } from '@sluice/core/policy'
import { describe, expect, it } from 'vitest'
import type { CheckApi, OpenStore } from './check-api.test.support.ts'
import { withStore, wrongPaths } from './check-api.test.support.ts'

/** Cut to a half when more than half of at least 10 calls in 10 seconds fail. */
const ERROR_RATE: ErrorRateCut = {
  cutAbove: 0.5,
  restoreBelow: 0.2,
  window: '10s',
  leastCalls: 10,
  step: 0.5,
  least: 0.1,
  hold: '5s',
}

/** Rules whose limits are cut while calls of `/orders` fail; not those of `/other`. */
export const CUT_RULES: RuleSet = {
  rules: [
    { resource: '/orders', methods: ['POST'], dimension: 'user', limit: 100, window: '1m', errorRate: ERROR_RATE },
    { resource: '/other', dimension: 'user', limit: 100, window: '1m' },
  ],
}

const FAILED = { resource: '/orders', method: 'POST', failed: true }

/** `count` reports of calls, failed ones by default. */
export function reportsOf(count: number, more: object = {}): { readonly reports: readonly object[] } {
  return { reports: Array.from({ length: count }, () => ({ ...FAILED, ...more })) }
}

/** The limit of a call now. */
export async function limitOf(api: CheckApi, resource = '/orders'): Promise<unknown> {
  return (await api.post('peek', { userId: 'ann', resource, method: 'POST' })).body['limit']
}

/** What reports of how calls ended do, on a store of the test's choice. */
export function reportSuite(name: string, open: OpenStore): void {
  describe(`reports of calls ${name}`, () => {
    it('cut the limits of what fails from the next check on, and give them back when it works again', () =>
      withStore(open, async ({ api, clock }) => {
        const checks = api({ ruleSet: CUT_RULES })
        expect(await checks.post('report', reportsOf(9))).toMatchObject({ status: 200, body: { count: 9 } })
        expect(await limitOf(checks)).toBe(100)
        expect(await checks.post('report', reportsOf(1))).toMatchObject({ status: 200, body: { count: 1 } })
        expect([await limitOf(checks), await limitOf(checks, '/other')]).toEqual([50, 100])
        clock.advance(5_000)
        await checks.post('report', reportsOf(20, { failed: false }))
        expect(await limitOf(checks)).toBe(100)
      }))

    it('count for the rules of their resource and method only', () =>
      withStore(open, async ({ api }) => {
        const checks = api({ ruleSet: CUT_RULES })
        await checks.post('report', reportsOf(50, { method: 'GET' }))
        await checks.post('report', reportsOf(50, { resource: '/other' }))
        expect(await limitOf(checks)).toBe(100)
      }))

    it('may be 1000, and change nothing where no rule asks for them', () =>
      withStore(open, async ({ api }) => {
        const checks = api({ ruleSet: { rules: [CUT_RULES.rules[1]!] } })
        const answer = await checks.post('report', reportsOf(1000, { resource: '/other' }))
        expect([answer.body, await limitOf(checks, '/other')]).toEqual([{ count: 1000 }, 100])
      }))

    it('are rejected as a whole for one that cannot be understood, and count nothing', () =>
      withStore(open, async ({ api }) => {
        const checks = api({ ruleSet: CUT_RULES })
        const answer = await checks.post('report', { reports: [...reportsOf(20).reports, { resource: '/orders' }] })
        expect([answer.status, wrongPaths(answer)]).toEqual([400, ['/reports/20/failed']])
        expect(await limitOf(checks)).toBe(100)
      }))
  })
}
