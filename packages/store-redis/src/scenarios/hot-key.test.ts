import { createLimiter } from '@sluice/core'
import { systemMonotonicMs } from '@sluice/core/internal'
import { startRedis } from '@sluice/testing/servers'
import { afterAll, describe, expect, it } from 'vitest'
import { redisStore } from '../redis-store.ts'
import { figure, pause, quantile } from './ground.test.support.ts'

const server = await startRedis()
const store = redisStore(server.url, { deadlineMs: 10_000, failureMode: 'closed' })
const rules = { calm: { limit: 1_000_000, window: '1h' as const }, hot: { limit: 10, window: '1h' as const } }
const limiters = createLimiter<keyof typeof rules, 'async'>({ store, rules })

afterAll(async () => {
  await store.close()
  await server.close()
})

const ROUNDS = 250
const CALM_PER_ROUND = 4

/** Scripts that the server has been asked to run. */
async function scriptCalls(): Promise<number> {
  const info = String(await server.command('INFO', 'commandstats'))
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(info)?.[1] ?? 0)
}

interface Played {
  readonly calmMs: number[]
  readonly hotDenied: number
  /** Calm keys that were denied, and whatever was decided without the store. */
  readonly wrong: number
  readonly calls: number
}

/** Checks quiet keys in a round every 4 ms, with `hotPerRound` checks of the hot key in each round. */
async function play(hotPerRound: number): Promise<Played> {
  const calmMs: number[] = []
  let hotDenied = 0
  let wrong = 0
  const before = await scriptCalls()
  const all: Promise<void>[] = []
  const askCalm = async (key: string): Promise<void> => {
    const askedMs = systemMonotonicMs()
    const { allowed, failure } = await limiters.limiter('calm').check(key)
    if (!allowed || failure !== undefined) wrong++
    calmMs.push(systemMonotonicMs() - askedMs)
  }
  const askHot = async (): Promise<void> => {
    const { allowed, failure } = await limiters.limiter('hot').check('hot')
    if (failure !== undefined) wrong++
    if (!allowed) hotDenied++
  }
  for (let round = 0; round < ROUNDS; round++) {
    for (let call = 0; call < CALM_PER_ROUND; call++) all.push(askCalm(`calm-${(round * CALM_PER_ROUND + call) % 200}`))
    for (let call = 0; call < hotPerRound; call++) all.push(askHot())
    await pause(4)
  }
  await Promise.all(all)
  return { calmMs, hotDenied, wrong, calls: (await scriptCalls()) - before }
}

describe('a key that is checked fifty times as often as the others', () => {
  it('makes almost no calls once it is denied, and hardly slows the others', async () => {
    await play(0)
    const alone = await play(0)
    const beside = await play(50)
    const p = (played: Played, part: number): string => quantile(played.calmMs, part).toFixed(2)
    figure(
      `other keys beside a hot one: p50 ${p(alone, 0.5)} -> ${p(beside, 0.5)} ms, p99 ${p(alone, 0.99)} -> ` +
        `${p(beside, 0.99)} ms; ` +
        `calls of the store ${alone.calls} -> ${beside.calls} for ${beside.hotDenied} denials more`,
    )
    expect(alone.wrong + beside.wrong).toBe(0)
    expect(beside.hotDenied).toBe(50 * ROUNDS - 10)
    // What asks again every 100 ms goes out with the other questions of its turn.
    expect(beside.calls).toBeLessThanOrEqual(2 * alone.calls)
    expect(quantile(beside.calmMs, 0.5)).toBeLessThanOrEqual(10 * quantile(alone.calmMs, 0.5) + 20)
  })

  it('is answered from memory', async () => {
    await limiters.limiter('hot').check('refused', { cost: 10 })
    const before = await scriptCalls()
    const startedMs = systemMonotonicMs()
    let denied = 0
    for (let call = 0; call < 50_000; call++) if (!(await limiters.limiter('hot').check('refused')).allowed) denied++
    const elapsedMs = systemMonotonicMs() - startedMs
    const asked = (await scriptCalls()) - before
    figure(`50,000 denials in ${elapsedMs.toFixed(0)} ms were ${asked} calls of the store`)
    expect(denied).toBe(50_000)
    // One in 100 ms, and heartbeats, one a second.
    expect(asked).toBeLessThanOrEqual(Math.ceil(elapsedMs / 100) + Math.ceil(elapsedMs / 1000) + 1)
  })
})
