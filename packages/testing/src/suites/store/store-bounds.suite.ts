import { isSluiceError, type Limiter, type Reservation } from '@sluice/core'
import { compileRule, createBatch, createItem } from '@sluice/core/internal'
import { receiptOf } from '@sluice/core/store'
import { describe, expect, it } from 'vitest'
import { type StoreFixture, type StoreHarness, withStore } from './store-fixture.ts'

/** More keys than a small store has room for. */
const MANY_KEYS = 5_000

/** Longer than a test takes. */
const HOLD_MICROS = 3_600_000_000

/** Fills a small store with keys that are used up, so that none of them is dropped for a new one. */
async function fill({ limiter }: StoreFixture, rule: { readonly limit: number }): Promise<void> {
  const filler = limiter(rule as never, 'filler')
  for (let key = 0; key < MANY_KEYS; key++) await filler.check(`used up ${key}`, { cost: rule.limit })
}

async function reserved(limiter: Limiter, key: string, cost: number): Promise<Reservation> {
  const answer = await limiter.reserve(key, { cost })
  if (!answer.allowed) throw new Error(`the reservation of ${key} was denied: ${answer.reason}`)
  return answer
}

/** What a store does when it is full. Nothing for stores that name no bound. */
export function boundTests(harness: StoreHarness): void {
  const { createSmall, maxReservations } = harness
  if (createSmall !== undefined) fullOfKeysTests({ ...harness, create: createSmall })
  if (maxReservations !== undefined) fullOfReservationsTests(harness, maxReservations)
}

/** `harness` creates stores with room for few keys. */
function fullOfKeysTests(harness: StoreHarness): void {
  describe('a store without room for another key', () => {
    const small = (title: string, run: (fixture: StoreFixture) => Promise<void>): void => {
      it(title, () => withStore(harness, run))
    }
    const rules = {
      'a packed state': { algorithm: 'fixed-window', limit: 10, window: '52w' },
      'a list': { algorithm: 'sliding-window-log', limit: 10, window: '52w' },
    } as const

    for (const [state, rule] of Object.entries(rules)) {
      small(`stores what a settlement reports as corrected: ${state}`, async (fixture) => {
        const ten = fixture.limiter(rule)
        const open = await reserved(ten, 'new', 0)
        await fill(fixture, rule)
        expect(await open.settle(3)).toEqual({ outcome: 'settled', corrected: 3 })
        // The units were charged to the counter that keys without room share.
        expect(await ten.check('new', { cost: 8 })).toMatchObject({ allowed: false })
        expect(await ten.check('new', { cost: 7 })).toMatchObject({ allowed: true, remaining: 0 })
      })
    }

    small('stores both corrections of a settlement of two keys', async (fixture) => {
      const rule = rules['a packed state']
      const [limit] = compileRule('rule', rule)
      const batch = createBatch([createItem(limit!, 'one', 0), createItem(limit!, 'two', 0)])
      await fixture.store.decide(batch)
      await fill(fixture, rule)
      expect(await fixture.store.settle(receiptOf(batch), [3, 4])).toEqual({ outcome: 'settled', corrected: 7 })
      const ten = fixture.limiter(rule)
      expect(await ten.check('new', { cost: 4 })).toMatchObject({ allowed: false })
      expect(await ten.check('new', { cost: 3 })).toMatchObject({ allowed: true, remaining: 0 })
    })

    small('releases the slot of a key that has no room', async (fixture) => {
      const slots = fixture.limiter({ algorithm: 'concurrency', limit: 2, lease: '52w' })
      await fill(fixture, rules['a list'])
      const first = await reserved(slots, 'one', 1)
      await reserved(slots, 'two', 1)
      expect(await slots.reserve('three')).toMatchObject({ allowed: false })
      expect(await first.renew()).toEqual({ outcome: 'settled', corrected: 0 })
      expect(await first.release()).toEqual({ outcome: 'settled', corrected: -1 })
      await reserved(slots, 'three', 1)
    })
  })
}

function fullOfReservationsTests(harness: StoreHarness, maxReservations: number): void {
  describe('a store without room for another reservation', () => {
    it('charges nothing when it throws', { timeout: 120_000 }, async () => {
      await withStore(harness, async ({ limiter, store }) => {
        const limit = 2 * maxReservations
        const options = { algorithm: 'fixed-window', limit, window: '52w' } as const
        const rule = limiter(options, 'rule')
        const first = await reserved(rule, 'key', 1)
        // As `reserve` does, without an object for each of them.
        const batch = createBatch([createItem(compileRule('rule', options)[0]!, 'key', 1)])
        batch.holdMicros = HOLD_MICROS
        for (let holder = 1; holder < maxReservations; holder++) {
          batch.holder = holder
          const answer = store.decide(batch)
          if (answer !== undefined) await answer
        }
        const before = await rule.peek('key')
        let error: unknown
        try {
          await rule.reserve('key', { cost: 5 })
        } catch (thrown) {
          error = thrown
        }
        expect(isSluiceError(error, 'SLUICE_STORE_FULL')).toBe(true)
        expect(await rule.peek('key')).toEqual(before)
        expect(before.remaining).toBe(limit - maxReservations)
        expect(await first.release()).toEqual({ outcome: 'settled', corrected: -1 })
        await reserved(rule, 'key', 1)
      })
    })
  })
}
