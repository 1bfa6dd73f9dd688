import type { RuleSet } from '@sluice/core/policy'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HOSTILE_KEYS } from '../../properties/arbitraries.ts'
import type { StoreHarness } from '../store/store-fixture.ts'
import { withPolicy } from './policy-fixture.ts'

const LIMIT = 3

interface Quota {
  readonly calendar: 'day' | 'month'
  readonly timeZone: string
  readonly rollover: boolean
}

/** The quota as a calendar on the wall has it: a count on each page, and what was left on the page before. */
class WallCalendar {
  readonly #quota: Quota
  readonly #format: Intl.DateTimeFormat
  #page = Number.NEGATIVE_INFINITY
  #used = 0
  #carried = 0

  constructor(quota: Quota) {
    this.#quota = quota
    const { timeZone } = quota
    this.#format = new Intl.DateTimeFormat('en-US', { timeZone, year: 'numeric', month: 'numeric', day: 'numeric' })
  }

  /** Whether a unit is left at an instant; takes it if so. */
  take(ms: number): boolean {
    const page = this.#pageOf(ms)
    if (page !== this.#page) this.#turnTo(page)
    if (this.#used >= LIMIT + this.#carried) return false
    this.#used++
    return true
  }

  /** Nothing is carried from before the first call, and of untouched pages only the last one counts, for two pages. */
  #turnTo(page: number): void {
    const pages = page - this.#page
    const left = pages === 1 ? LIMIT + this.#carried - this.#used : LIMIT
    this.#carried = this.#quota.rollover && pages <= 2 ? Math.min(LIMIT, left) : 0
    this.#page = page
    this.#used = 0
  }

  #pageOf(ms: number): number {
    const parts = Object.fromEntries(this.#format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]))
    const { year = 0, month = 0, day = 0 } = parts
    return this.#quota.calendar === 'month' ? year * 12 + month : Date.UTC(year, month - 1, day) / 86_400_000
  }
}

/** Around the ends of February in leap years and others, changes of clocks, the end of a year. */
const EDGES = [
  '2032-02-28T23:00Z',
  '2032-02-29T22:59Z',
  '2033-02-28T23:30Z',
  '2032-03-28T00:30Z',
  '2032-10-31T00:30Z',
  '2032-03-14T06:30Z',
  '2032-11-07T05:30Z',
  '2032-12-31T12:00Z',
  '2032-04-03T14:30Z',
]

const HOUR_MS = 3_600_000

/** Quotas by the calendar, and identities of any form. */
export function calendarTests(harness: StoreHarness): void {
  describe('quotas by the calendar', () => {
    it('equal a calendar: month ends, leap days, clock changes, units carried over and expired', async () => {
      const quotas = fc.record({
        calendar: fc.constantFrom('day', 'month'),
        timeZone: fc.constantFrom('UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kolkata'),
        rollover: fc.boolean(),
      })
      const waits = fc.array(fc.oneof(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 80 * 24 })), {
        minLength: 1,
        maxLength: 25,
      })
      await fc.assert(
        fc.asyncProperty(quotas, fc.constantFrom(...EDGES), waits, async (quota, edge, hours) => {
          const { calendar, timeZone, rollover } = quota
          const rule = { resource: '*', dimension: 'user', algorithm: 'fixed-window', limit: LIMIT, rollover } as const
          const ruleSet: RuleSet = { rules: [{ ...rule, window: { calendar, timeZone } }] }
          await withPolicy(harness, ruleSet, async ({ clock, check }) => {
            const wall = new WallCalendar(quota)
            let ms = Date.parse(edge)
            for (const wait of hours) {
              ms += wait * HOUR_MS
              clock.setMicros(ms * 1000)
              const { allowed } = await check({ resource: '/x', user: 'u' })
              expect(allowed).toBe(wall.take(ms))
            }
          })
        }),
        { numRuns: 60 },
      )
    })
  })

  describe('identities of any form', () => {
    it('with separators, braces, control characters or emoji, or of a megabyte, stay distinct', async () => {
      const ruleSet: RuleSet = {
        rules: [
          { resource: '/x', dimension: 'user', limit: 1, window: '1m' },
          { resource: '/x', dimension: 'plan', limit: 1, window: '1m' },
          { resource: '/pair', dimension: 'tenant+user', limit: 1, window: '1m' },
        ],
      }
      const megabyte = 'x'.repeat(1_000_000)
      const hostile = HOSTILE_KEYS.filter((key) => key !== '')
      const entities = new Set([...hostile, megabyte, `${megabyte}y`, 'user:a', 'plan:a', 'a', '1:a'])
      await withPolicy(harness, ruleSet, async ({ check }) => {
        for (const round of [true, false]) {
          for (const entity of entities) {
            expect((await check({ resource: '/x', user: entity })).allowed).toBe(round)
            expect((await check({ resource: '/x', descriptors: { plan: entity } })).allowed).toBe(round)
          }
        }
        const pairs = [
          ['a', 'b'],
          ['ab', '1'],
          ['a1', 'b'],
          ['a', '1b'],
          ['1:a', 'b'],
          ['a', '1:b'],
        ] as const
        for (const round of [true, false]) {
          for (const [tenant, user] of pairs) {
            expect((await check({ resource: '/pair', tenant, user })).allowed).toBe(round)
          }
        }
      })
    })
  })
}
