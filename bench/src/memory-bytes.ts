import type { Bench, BenchResult } from './bench.ts'
import { runChild } from './child.ts'

const KEYS = 1_000_000
const MOST_BYTES = 80
const CANDIDATES = ['sluice', 'rate-limiter-flexible', 'express-rate-limit']

/** Bytes of heap and buffers for each of a million keys, each candidate in a process of its own. */
export const memoryBytes: Bench = {
  id: 'memory-bytes',
  title: 'heap and buffers for each of 1,000,000 keys',
  async run(progress) {
    const results: BenchResult[] = []
    for (const name of CANDIDATES) {
      const measured = await runChild<{ bytesPerKey: number }>('memory-bytes-child.ts', [name, String(KEYS)])
      const bytesPerKey = Math.round(measured.bytesPerKey * 10) / 10
      progress(`${name}: ${bytesPerKey} bytes a key`)
      results.push({ name, bytesPerKey })
    }
    const [ours, flexible, express] = results.map((result) => result.bytesPerKey!)
    return {
      id: 'memory-bytes',
      results,
      ratios: {
        bytesPerKey: ours!,
        'rate-limiter-flexible': flexible! / ours!,
        'express-rate-limit': express! / ours!,
      },
      floor: { bytesPerKey: MOST_BYTES },
      ok: ours! <= MOST_BYTES,
      notes: [`at most ${MOST_BYTES} bytes a key; the other ratios say how many times more the peers take`],
    }
  },
}
