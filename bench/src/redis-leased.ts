import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { startRedis } from '@sluice/testing/servers'
import type { Bench } from './bench.ts'

const NODES = 2
const KEYS = 4
const CALLERS = 32
const RUN_MS = 2000
const ROUNDS = 3
const FLOOR = 1_000_000

/** Never reached, so that the rate of decisions is measured; and reached early, so that the bound is. */
const LIMITS = { 'limits not reached': 1_000_000_000, 'limits reached': 250_000 }

interface Outcome {
  readonly opsPerSecond: number
  readonly overAdmitted: number
  readonly admitted: number
}

/** Several processes on hot keys under leases, released together. */
async function runNodes(url: string, limit: number): Promise<Outcome> {
  const file = fileURLToPath(new URL('./redis-leased-child.ts', import.meta.url))
  const setting = JSON.stringify({ url, limit, keys: KEYS, callers: CALLERS, runMs: RUN_MS })
  const children = Array.from({ length: NODES }, () => {
    const child = spawn(process.execPath, ['--conditions=source', file, setting], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    return { child, lines: createInterface({ input: child.stdout })[Symbol.asyncIterator]() }
  })
  await Promise.all(children.map(({ lines }) => lines.next()))
  for (const { child } of children) child.stdin.end('go')
  const reports = await Promise.all(
    children.map(async ({ child, lines }) => {
      const { value } = (await lines.next()) as { value: string }
      if (child.exitCode === null) await once(child, 'exit')
      return JSON.parse(value) as { decisions: number; admitted: number[] }
    }),
  )
  const perKey = Array.from({ length: KEYS }, (_, key) =>
    reports.reduce((sum, { admitted }) => sum + admitted[key]!, 0),
  )
  return {
    opsPerSecond: reports.reduce((sum, { decisions }) => sum + decisions, 0) / (RUN_MS / 1000),
    overAdmitted: perKey.reduce((sum, admitted) => sum + Math.max(0, admitted - limit), 0),
    admitted: perKey.reduce((sum, admitted) => sum + admitted, 0),
  }
}

/** Decisions a second of two processes that share hot keys, and whether they ever exceed the limit together. */
export const redisLeased: Bench = {
  id: 'redis-leased',
  title: `${NODES} processes, ${KEYS} hot keys under leases, one Redis`,
  async run(progress) {
    await using server = await startRedis()
    const results: { name: string; opsPerSecond: number }[] = []
    const notes: string[] = []
    let over = 0
    for (const [name, limit] of Object.entries(LIMITS)) {
      let best: Outcome | undefined
      for (let round = 1; round <= ROUNDS; round++) {
        await server.command('FLUSHALL')
        const outcome = await runNodes(server.url, limit)
        over += outcome.overAdmitted
        if (best === undefined || outcome.opsPerSecond > best.opsPerSecond) best = outcome
        progress(
          `round ${round} of ${ROUNDS}: ${name} ${Math.round(outcome.opsPerSecond).toLocaleString('en')} ` +
            'decisions/s, ' +
            `${outcome.overAdmitted} over`,
        )
      }
      results.push({ name, opsPerSecond: Math.round(best?.opsPerSecond ?? 0) })
      if (limit < RUN_MS * 1000) notes.push(`limits reached: ${best?.admitted} of ${KEYS * limit} units were admitted`)
    }
    const rate = results[0]!.opsPerSecond
    return {
      id: 'redis-leased',
      results,
      ratios: { 'decisions a second / 1,000,000': rate / FLOOR, 'admitted over the limits': over },
      floor: { 'decisions a second / 1,000,000': 1, 'admitted over the limits': 0 },
      ok: rate >= FLOOR && over === 0,
      notes: [...notes, 'decisions a second are of all processes together'],
    }
  },
}
