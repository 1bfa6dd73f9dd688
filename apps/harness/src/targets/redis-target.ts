import type { Limiter, Rule } from '@sluice/core'
import { createLimiter, systemRandom, systemTimers } from '@sluice/core'
import type { RedisStore, ServerWarning } from '@sluice/store-redis'
import { redisStore } from '@sluice/store-redis'
import { EXACT_STORE, requireStoreAnswer } from '../callers/exact-redis-options.ts'
import { ProcessPool } from '../callers/process-pool.ts'
import { SharedClock } from '../callers/shared-clock.ts'
import type { Burst, BurstOutcome, Target, TargetOptions, TestBed } from '../tests/test-bed.ts'
import type { RedisHost } from './redis-host.ts'
import { openRedisHost } from './redis-host.ts'

/** Far longer than any order takes, on any machine. */
const DEADLINE_MS = 60_000

/** The Redis store on one Redis, asked by real processes. */
export async function redisTarget(setting: TargetOptions): Promise<Target> {
  const { threads, stopwatch, redisUrl } = setting
  const host = await openRedisHost(redisUrl, { timers: systemTimers, random: systemRandom })
  const pool = new ProcessPool({ processes: threads, stopwatch, timers: systemTimers, deadlineMs: DEADLINE_MS })
  const onWarning = oncePerCode(setting.printError)
  let beds = 0
  return {
    threads,
    prepare: (rule) => RedisTestBed.prepare(rule, { host, pool, onWarning, prefix: `${host.prefix}:${++beds}` }),
    close: async () => {
      await pool.close()
      await host.close()
    },
  }
}

/** All test beds use the same server: a problem with it is reported once. */
function oncePerCode(printError: TargetOptions['printError']): (warning: ServerWarning) => void {
  const told = new Set<string>()
  return ({ code, message }) => {
    if (told.has(code)) return
    told.add(code)
    printError(`${code}: ${message}`)
  }
}

interface RedisTestBedParts {
  readonly host: RedisHost
  readonly pool: ProcessPool
  readonly prefix: string
  readonly onWarning: (warning: ServerWarning) => void
}

class RedisTestBed implements TestBed {
  readonly #pool: ProcessPool
  readonly #clock = SharedClock.create()
  readonly #store: RedisStore
  readonly #limiter: Limiter<'async'>

  private constructor(rule: Rule, { host, pool, prefix, onWarning }: RedisTestBedParts) {
    this.#pool = pool
    this.#store = redisStore(host.client, { ...EXACT_STORE, prefix, clock: this.#clock, onWarning })
    this.#limiter = createLimiter<'async'>({ ...rule, store: this.#store })
  }

  static async prepare(rule: Rule, parts: RedisTestBedParts): Promise<TestBed> {
    const { host, pool, prefix } = parts
    const bed = new RedisTestBed(rule, parts)
    await pool.attach({ rule, url: host.url, prefix })
    return bed
  }

  release(burst: Burst): Promise<BurstOutcome> {
    return this.#pool.burst(burst, this.#clock.nowMicros())
  }

  async moveToReset(node: string): Promise<boolean> {
    const { resetAt } = requireStoreAnswer(await this.#limiter.peek(node))
    this.#clock.moveTo(resetAt)
    return true
  }

  async close(): Promise<void> {
    await this.#pool.detach()
    await this.#limiter.close()
    await this.#store.close()
  }
}
