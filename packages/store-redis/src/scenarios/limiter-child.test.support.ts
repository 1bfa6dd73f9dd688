// A process of its own with a limiter on Redis, which does what its parent orders.
import { openSync, writeSync } from 'node:fs'
import type { Decision, Limiter, LimiterSet, Reservation, Rule } from '@sluice/core'
import { createLimiter } from '@sluice/core'
import { createClient } from 'redis'
import { type RedisStore, redisStore } from '../redis-store.ts'
import { runAfterIo } from '../system/event-loop.ts'
import { Caller } from './caller.test.support.ts'
import { pause } from './ground.test.support.ts'
import type { ChildAnswers, ChildOrder, ChildOrders, Opening } from './limiter-orders.test.support.ts'
import { ENTER, LEAVE } from './limiter-orders.test.support.ts'
import { count, emptyTally, type Tally } from './tally.test.support.ts'

let store: RedisStore
let limiters: LimiterSet<string, 'async'>
let sink: number | undefined
let caller: Caller | undefined
let isWorking = false
const held: Reservation<'async'>[] = []

type Actions = { readonly [Name in keyof ChildOrders]: (order: ChildOrders[Name]) => Promise<ChildAnswers[Name]> }

const actions: Actions = {
  open,
  burst: ({ rule, key, ...how }) => askAll(() => limiters.limiter(rule).check(key), how),
  joint: ({ requests, ...how }) => askAll(() => limiters.checkAll(requests), how),
  pour({ rule, key, atOnce, pauseMs }) {
    const onAdmitted = (): void => void (sink === undefined || writeSync(sink, '+'))
    const limiter = limiters.limiter(rule)
    caller = new Caller({ check: () => limiter.check(key), atOnce, pauseMs, onAdmitted })
    return Promise.resolve()
  },
  stop: async () => (await caller?.stop()) ?? emptyTally(),
  hold,
  work,
  jump({ ms }) {
    Object.assign(globalThis, { skewMs: ms })
    return Promise.resolve()
  },
  peek: async ({ rule, key }) => {
    const { allowed, remaining, resetAt } = await limiters.limiter(rule).peek(key, { cost: 0 })
    return { allowed, remaining, resetAt }
  },
  stats: () => Promise.resolve(store.stats()),
  async close() {
    isWorking = false
    await caller?.stop()
    await store.close()
  },
}

async function open({ target, options, rules, sinkFile }: Opening): Promise<void> {
  store = redisStore(target, options)
  limiters = createLimiter<string, 'async'>({ store, rules: rules as Record<string, Rule> })
  if (sinkFile !== undefined) sink = openSync(sinkFile, 'a')
  if (!(await store.ready(20_000))) throw new Error('no connection to Redis')
}

/** Makes all checks, `perTurn` of them in each turn of the event loop. */
async function askAll(
  ask: () => Promise<Decision>,
  { calls, perTurn }: { readonly calls: number; readonly perTurn: number },
): Promise<Tally> {
  const tally = emptyTally()
  const asked: Promise<void>[] = []
  for (let call = 1; call <= calls; call++) {
    asked.push(ask().then((decision) => count(tally, decision)))
    if (call % perTurn === 0) await new Promise<void>((resolve) => runAfterIo(resolve))
  }
  await Promise.all(asked)
  return tally
}

async function hold({ rule, key, times }: ChildOrders['hold']): Promise<number> {
  const limiter: Limiter<'async'> = limiters.limiter(rule)
  const answers = await Promise.all(Array.from({ length: times }, () => limiter.reserve(key)))
  for (const answer of answers) if ('release' in answer) held.push(answer)
  return held.length
}

/** Workers that take a slot, tell an oracle, work for a moment, tell it again, and let go. */
async function work({ url, rule, key, workers, oracle }: ChildOrders['work']): Promise<void> {
  const client = createClient({ url })
  await client.connect()
  const limiter = limiters.limiter(rule)
  isWorking = true
  const run = async (worker: number): Promise<void> => {
    for (let turn = 0; isWorking; turn++) {
      const slot = await limiter.reserve(key)
      if (!('release' in slot)) {
        await pause(3)
        continue
      }
      const name = `${process.pid}-${worker}-${turn}`
      await client.eval(ENTER, { keys: [oracle], arguments: [name] })
      await pause(2 + (turn % 5))
      await client.eval(LEAVE, { keys: [oracle], arguments: [name] })
      await slot.release()
    }
  }
  // Closing the store rejects the workers that wait for a slot.
  void Promise.allSettled(Array.from({ length: workers }, (_, worker) => run(worker))).then(() => client.destroy())
}

process.on('message', async ({ id, name, order }: ChildOrder) => {
  try {
    const answer = await actions[name](order as never)
    process.send!({ id, answer })
  } catch (error) {
    process.send!({ id, error: String(error) })
  }
})
process.on('disconnect', () => process.exit())
process.send!({ id: 0 })
