import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { engineTarget, followConfig, openConfigStore } from '@sluice/config-store'
import { memoryStore } from '@sluice/core'
import { type Override, PolicyEngine, type RuleSet } from '@sluice/core/policy'
import { keySequence } from './key-sequence.ts'

// Puts the given number of overrides into a database and follows it, in a process of its own. Started by the
// overrides-load bench.

const AUTHOR = { name: 'bench' }
const RULES: RuleSet = { rules: [{ resource: '*', dimension: 'user', limit: 1_000_000, window: '1m' }] }
const CALLS = 500_000
const CALLERS = 10_000

const [count = '', url = ''] = process.argv.slice(2)
const folder = mkdtempSync(join(tmpdir(), 'sluice-overrides-'))

function overrideOf(index: number, limit = 2_000_000): Override {
  return { dimension: 'user', entity: `user-${index}`, resource: '*', terms: { limit } }
}

function* overrides(): Generator<Override> {
  for (let index = 0; index < Number(count); index++) yield overrideOf(index)
}

async function timed(run: () => Promise<unknown>): Promise<number> {
  const started = performance.now()
  await run()
  return performance.now() - started
}

/** Runs something and watches how long turns of the event loop are, by what they take of the processor. */
async function longestTurnOf(run: () => Promise<unknown>): Promise<number> {
  let longestMs = 0
  let isOver = false
  let before = process.threadCpuUsage()
  const watch = (): void => {
    const { user, system } = process.threadCpuUsage(before)
    longestMs = Math.max(longestMs, (user + system) / 1000)
    before = process.threadCpuUsage()
    if (!isOver) setImmediate(watch)
  }
  setImmediate(watch)
  await run()
  isOver = true
  return longestMs
}

const store = await openConfigStore(url === '' ? join(folder, 'config.db') : url)
await store.versions.edit(() => RULES, AUTHOR)
const putMs = await timed(() => store.overrides.putAll(overrides(), AUTHOR))

const engine = new PolicyEngine({ store: memoryStore(), ruleSet: { rules: [] } })
const follower = followConfig({ feed: store.feed, target: engineTarget(engine), waitMs: 600_000 })
let loadMs = 0
const longestTurnMs = await longestTurnOf(async () => {
  loadMs = await timed(() => follower.ready())
})

const limitOf = (user: string): number => engine.peek({ resource: '/', user }).limit
const changeMs = await timed(async () => {
  await store.overrides.put(overrideOf(7, 3_000_000), AUTHOR)
  while (limitOf('user-7') !== 3_000_000) await new Promise((resolve) => setImmediate(resolve))
})

const sequence = keySequence(CALLS, CALLERS)
let callsPerSecond = 0
for (let pass = 0; pass < 5; pass++) {
  const started = performance.now()
  for (const caller of sequence) engine.check({ resource: '/', user: `user-${caller}` })
  callsPerSecond = Math.max(callsPerSecond, CALLS / ((performance.now() - started) / 1000))
}
process.stdout.write(JSON.stringify({ putMs, loadMs, longestTurnMs, changeMs, callsPerSecond }))
await follower.close()
await store.close()
rmSync(folder, { recursive: true, force: true })
process.exit(0)
