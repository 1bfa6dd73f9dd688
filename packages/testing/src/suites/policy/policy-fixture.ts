import { compileRule } from '@sluice/core/internal'
import type { PolicyDecision, PolicyEngineOptions, PolicyEvent, PolicyRequest, RuleSet } from '@sluice/core/policy'
import { PolicyEngine } from '@sluice/core/policy'
import type { Limit, Mode } from '@sluice/core/store'
import { seededRandom } from '../../fakes/seeded-random.ts'
import type { StoreFixture, StoreHarness } from '../store/store-fixture.ts'
import { withStore } from '../store/store-fixture.ts'

const [SETTLED] = compileRule('settled', { limit: 1, window: '1m' }) as [Limit]

/** One test's engine, with all that is needed to use it. */
export interface PolicyFixture extends Pick<StoreFixture, 'clock' | 'store' | 'advance'> {
  readonly engine: PolicyEngine
  /** What the engine told, in order. */
  readonly events: PolicyEvent[]
  /** Checks a request. */
  check(request: PolicyRequest): Promise<PolicyDecision>
  /** Checks a request `times` times; how many were allowed. */
  admitted(times: number, request: PolicyRequest): Promise<number>
  /** One more engine on the same store, without rules: another node. */
  another(): PolicyEngine
  /** Waits for all background work. */
  settled(): Promise<void>
}

/** Opens a store, puts a rule set in force on it, runs something, and closes the store again. */
export async function withPolicy(
  harness: StoreHarness,
  rules: RuleSet | PolicyEngineOptions['ruleSet'] | Omit<PolicyEngineOptions, 'store'>,
  run: (fixture: PolicyFixture) => void | Promise<void>,
): Promise<void> {
  const options = rules !== undefined && 'rules' in rules ? { ruleSet: rules } : rules
  await withStore(harness, async ({ clock, store, advance, ask }) => {
    const events: PolicyEvent[] = []
    const observer = (event: PolicyEvent): void => void events.push(event)
    const engine = new PolicyEngine<Mode>({ clock, random: seededRandom(1), observer, ...options, store })
    const another = (): PolicyEngine => new PolicyEngine<Mode>({ clock, random: seededRandom(2), store })
    const check = async (request: PolicyRequest): Promise<PolicyDecision> => await engine.check(request)
    await run({
      clock,
      store,
      advance,
      engine,
      events,
      check,
      another,
      async admitted(times, request) {
        let count = 0
        for (let call = 0; call < times; call++) if ((await check(request)).allowed) count++
        return count
      },
      async settled() {
        // Calls are answered in order; what follows from an answer makes further calls.
        for (let round = 0; round < 5; round++) await ask(SETTLED, 'idle', 0)
      },
    })
  })
}
