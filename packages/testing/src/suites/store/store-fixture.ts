import type { Limiter, LimiterSet, Rule, Store } from '@sluice/core'
import { createLimiter } from '@sluice/core'
import { createBatch, createItem } from '@sluice/core/internal'
import type { Limit, Mode } from '@sluice/core/store'
import { FakeClock } from '../../fakes/fake-clock.ts'
import { seededRandom } from '../../fakes/seeded-random.ts'

/**
 * Something that a store may be unable to do under test: have its time moved on, give reservations back by itself,
 * block keys, hold states of varying length (the exact log, leases), follow the calendar.
 */
export type StoreCapability = 'controlled-time' | 'reservations' | 'blocks' | 'long-states' | 'calendar'

/** How {@link storeSuite} gets at a store. */
export interface StoreHarness {
  /** A new, empty store whose time is that of `clock`. A store with a time of its own lacks `controlled-time`. */
  create(clock: FakeClock): Store | Promise<Store>
  /**
   * The same store with room for at most 100 keys. Leave it out when the store has no bound; its tests are then
   * skipped.
   */
  createSmall?(clock: FakeClock): Store | Promise<Store>
  /** Maximum number of open reservations of a store made by `create`. Default: no bound; its tests are then skipped. */
  readonly maxReservations?: number
  /** Advances the time of the store. Default: advances `clock`. */
  advance?(clock: FakeClock, ms: number): void | Promise<void>
  /** What it cannot do, with the reason for each. Tests that need it are skipped and say so. */
  readonly lacks?: Partial<Readonly<Record<StoreCapability, string>>>
}

/** One test's store, with all that is needed to use it. */
export interface StoreFixture {
  readonly clock: FakeClock
  readonly store: Store
  /** A limiter of one rule on the store. */
  limiter(rule: Rule, name?: string): Limiter
  /** A limiter of several rules on the store. */
  set<Name extends string>(rules: Readonly<Record<Name, Rule>>): LimiterSet<Name>
  /** Asks the store about one limit, without a limiter: whether it was allowed, and what remains. */
  ask(limit: Limit, key: string, cost: number): Promise<{ allowed: boolean; remaining: number }>
  /** Moves time on. */
  advance(ms: number): Promise<void>
}

/** Opens a store, runs something on it, and closes it again. */
export async function withStore(
  harness: StoreHarness,
  run: (fixture: StoreFixture) => void | Promise<void>,
): Promise<void> {
  const clock = new FakeClock()
  const store = await harness.create(clock)
  const parts = { store, clock, random: seededRandom(1) }
  try {
    await run({
      clock,
      store,
      limiter: (rule, name = 'rule') => createLimiter<Mode>({ ...rule, ...parts, name }),
      set: <Name extends string>(rules: Readonly<Record<Name, Rule>>) => createLimiter<Name, Mode>({ ...parts, rules }),
      async ask(limit, key, cost) {
        const batch = createBatch([createItem(limit, key, cost)])
        await store.decide(batch)
        return { allowed: batch.allowed, remaining: batch.items[0]!.verdict.remaining }
      },
      async advance(ms) {
        if (harness.advance === undefined) clock.advance(ms)
        else await harness.advance(clock, ms)
      },
    })
  } finally {
    await store.close()
  }
}
