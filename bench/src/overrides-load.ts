import { startPostgres } from '@sluice/testing/servers'
import type { Bench } from './bench.ts'
import { runChild } from './child.ts'

const OVERRIDES = 1_000_000

/** What a node over one database took, in milliseconds. */
interface Loaded {
  readonly putMs: number
  readonly loadMs: number
  /** Longest that nothing else could be done while loading, by the processor time of one turn of the event loop. */
  readonly longestTurnMs: number
  /** From the change of one override to the limit that it sets, in a node that follows. */
  readonly changeMs: number
  readonly callsPerSecond: number
}

/** How long a million overrides take into a database and out of it. */
export const overridesLoad: Bench = {
  id: 'overrides-load',
  title: 'a million overrides into SQLite and PostgreSQL, and from there into a node',
  async run(progress) {
    await using postgres = await startPostgres()
    const urls = { SQLite: '', PostgreSQL: postgres.url }
    const loaded = new Map<string, Loaded>()
    for (const [name, url] of Object.entries(urls)) {
      const measured = await runChild<Loaded>('overrides-load-child.ts', [String(OVERRIDES), url])
      loaded.set(name, measured)
      progress(`${name}: put ${Math.round(measured.putMs)} ms, loaded ${Math.round(measured.loadMs)} ms`)
    }
    return {
      id: 'overrides-load',
      results: [...loaded].map(([name, { callsPerSecond }]) => ({ name, opsPerSecond: Math.round(callsPerSecond) })),
      ratios: {},
      floor: {},
      ok: true,
      notes: [...loaded].map(
        ([name, { putMs, loadMs, longestTurnMs, changeMs }]) =>
          `${name}: written in ${seconds(putMs)}, loaded by a node in ${seconds(loadMs)}, longest turn ` +
          `${Math.round(longestTurnMs)} ms; one change later in force after ${Math.round(changeMs)} ms`,
      ),
    }
  },
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(1)} s`
}
