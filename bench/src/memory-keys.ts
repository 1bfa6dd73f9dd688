import type { Bench } from './bench.ts'
import { runChild } from './child.ts'

const CALLS = 1_000_000
const KEYS = 100_000
const ROUNDS = 3
const PASSES = 5
const CANDIDATES = ['sluice check', 'sluice tryAcquire', 'rate-limiter-flexible', 'express-rate-limit']
const FLOOR = { 'rate-limiter-flexible': 5, 'express-rate-limit': 2.5 }

/** Calls a second over 100,000 keys in no order, one thread, against the memory stores of the peers. */
export const memoryKeys: Bench = {
  id: 'memory-keys',
  title: 'one thread, 100,000 random keys, each key built for its call',
  async run(progress) {
    const best = new Map<string, number>()
    // Rounds go round the candidates, so that a noisy moment of the machine does not hit one of them alone; each has a
    // process of its own, so that none pays for another's garbage.
    for (let round = 1; round <= ROUNDS; round++) {
      for (const name of CANDIDATES) {
        const args = [name, String(CALLS), String(KEYS), String(PASSES)]
        const { opsPerSecond } = await runChild<{ opsPerSecond: number }>('memory-keys-child.ts', args)
        best.set(name, Math.max(best.get(name) ?? 0, opsPerSecond))
        progress(`round ${round} of ${ROUNDS}: ${name} ${Math.round(opsPerSecond).toLocaleString('en')} calls/s`)
      }
    }
    const ratio = (ours: string, peer: string): number => (best.get(ours) ?? 0) / (best.get(peer) ?? 1)
    const ratios = {
      'rate-limiter-flexible': ratio('sluice tryAcquire', 'rate-limiter-flexible'),
      'express-rate-limit': ratio('sluice tryAcquire', 'express-rate-limit'),
      'check to rate-limiter-flexible': ratio('sluice check', 'rate-limiter-flexible'),
      'check to express-rate-limit': ratio('sluice check', 'express-rate-limit'),
    }
    return {
      id: 'memory-keys',
      results: CANDIDATES.map((name) => ({ name, opsPerSecond: Math.round(best.get(name) ?? 0) })),
      ratios,
      floor: FLOOR,
      ok:
        ratios['rate-limiter-flexible'] >= FLOOR['rate-limiter-flexible'] &&
        ratios['express-rate-limit'] >= FLOOR['express-rate-limit'],
      notes: ['the floors are for tryAcquire, which answers yes or no; check answers with a full decision'],
    }
  },
}
