import type { Bench } from './bench.ts'
import { runChild } from './child.ts'

const CALLS = 500_000
const ROUNDS = 3
const PASSES = 5
const OVERRIDES = 1_000_000
const LONGEST = 1.3

const SIZES = [
  { size: '10 rules', rules: 10, overrides: 0 },
  { size: '10,000 rules', rules: 10_000, overrides: 0 },
  { size: '10,000 rules, 1 million overrides', rules: 10_000, overrides: OVERRIDES },
] as const

const CANDIDATES = (['skewed', 'even'] as const).flatMap((spread) =>
  SIZES.map(({ size, ...load }) => ({ ...load, spread, name: spread === 'even' ? `${size}, evenly` : size })),
)

interface Measured {
  readonly opsPerSecond: number
  readonly loadMs: number
  readonly bytes: number
}

/** The time of a decision as rules and overrides become many, each path another. */
export const rulesScale: Bench = {
  id: 'rules-scale',
  title: 'a decision with 10 rules, with 10,000, and with 1 million overrides besides',
  async run(progress) {
    const best = new Map<string, Measured>()
    for (let round = 1; round <= ROUNDS; round++) {
      for (const { name, rules, overrides, spread } of CANDIDATES) {
        const args = [rules, overrides, spread, CALLS, PASSES].map(String)
        const measured = await runChild<Measured>('rules-scale-child.ts', args)
        const { opsPerSecond } = measured
        if (opsPerSecond > (best.get(name)?.opsPerSecond ?? 0)) best.set(name, measured)
        progress(`round ${round} of ${ROUNDS}: ${name} ${Math.round(opsPerSecond).toLocaleString('en')} calls/s`)
      }
    }
    const [few, many, overridden, evenFew, evenMany, evenOverridden] = CANDIDATES.map(
      ({ name }) => best.get(name)!,
    ) as [Measured, Measured, Measured, Measured, Measured, Measured]
    const floored = {
      'time 10,000 rules to 10': few.opsPerSecond / many.opsPerSecond,
      'time 1 million overrides to none': many.opsPerSecond / overridden.opsPerSecond,
    }
    const ratios = {
      ...floored,
      '10,000 rules to 10, evenly': evenFew.opsPerSecond / evenMany.opsPerSecond,
      'overrides to none, evenly': evenMany.opsPerSecond / evenOverridden.opsPerSecond,
    }
    return {
      id: 'rules-scale',
      results: CANDIDATES.map(({ name }) => ({ name, opsPerSecond: Math.round(best.get(name)!.opsPerSecond) })),
      ratios,
      floor: { 'time 10,000 rules to 10': LONGEST, 'time 1 million overrides to none': LONGEST },
      ok: Object.values(floored).every((ratio) => ratio <= LONGEST),
      notes: [
        'the floors are the most that each time may grow by, for callers and rules that are requested as traffic ' +
          'is: the n-th 1/n as often as the first',
        'evenly: every rule as often as every other, so that nothing is in the caches of the processor; no floor',
        `1 million overrides took ${Math.round(overridden.loadMs)} ms to load and ` +
          `${Math.round(overridden.bytes / OVERRIDES)} bytes each`,
      ],
    }
  },
}
