import type { CheckAnswer } from '@sluice/contract'
import { describe, expect, it } from 'vitest'
import { decisionOf } from './check-answers.ts'
import { createClient } from './create-client.ts'
import { HeldTime } from './fake-time.test.support.ts'
import { serviceLimiter } from './service-limiter.ts'
import { answerJson, TableServer } from './table-server.test.support.ts'

const ALLOWED: CheckAnswer = {
  allowed: true,
  reason: 'allowed',
  limit: 10,
  remaining: 4,
  resetAt: '2026-01-01T00:01:00Z',
  retryAfter: null,
  dimension: 'user',
  rule: 'github',
}
const DENIED: CheckAnswer = { ...ALLOWED, allowed: false, reason: 'limit', remaining: 0, retryAfter: 3 }

/** Turns from a service that answers like this, and goes on with the last. */
async function turnsBy(...answers: [CheckAnswer, ...CheckAnswer[]]): Promise<{
  readonly server: TableServer
  readonly time: HeldTime
  readonly turns: ReturnType<typeof serviceLimiter>
}> {
  const server = await TableServer.start()
  server.answer = (_, response) => {
    const answer = answers.length > 1 ? answers.shift()! : answers[0]
    return answerJson(response, answer.allowed ? 200 : 429, answer)
  }
  const time = new HeldTime()
  const client = createClient({ url: server.url })
  const request = (key: string, cost: number): { userId: string; resource: string; tokens: number } => ({
    userId: key,
    resource: '/outbound',
    tokens: cost,
  })
  return { server, time, turns: serviceLimiter({ client, request, ...time }) }
}

describe('serviceLimiter', () => {
  it('asks, waits for the announced time, and asks again', async () => {
    const { server, time, turns } = await turnsBy(DENIED, DENIED, ALLOWED)
    const turn = turns.acquire('github', { cost: 2 })
    await time.pass(3000)
    await time.pass(3000)
    expect(await turn).toEqual({ allowed: true, retryAfterMs: 0 })
    const check = { userId: 'github', resource: '/outbound', tokens: 2 }
    expect(server.asked.map(({ body }) => body)).toEqual([check, check, check])
  })

  it('waits in the queue that it was let into', async () => {
    const { server, time, turns } = await turnsBy({ ...ALLOWED, delayMs: 250 })
    const turn = turns.acquire('a', { cost: 1 })
    await time.pass(250)
    expect(await turn).toEqual({ allowed: true, retryAfterMs: 0 })
    expect(server.asked).toHaveLength(1)
  })

  it('is rejected when it would take too long, or for ever', async () => {
    const { time, turns } = await turnsBy(DENIED, DENIED, { ...DENIED, reason: 'never', retryAfter: null })
    expect(await turns.acquire('a', { cost: 1, maxWait: 2999 })).toEqual({ allowed: false, retryAfterMs: 3000 })
    const turn = turns.acquire('a', { cost: 1 })
    await time.pass(3000)
    expect(await turn).toEqual({ allowed: false, retryAfterMs: Number.POSITIVE_INFINITY })
  })

  it('does not ask without end where a denial has no wait', async () => {
    const { time, turns } = await turnsBy({ ...DENIED, retryAfter: 0 }, ALLOWED)
    const turn = turns.acquire('a', { cost: 1 })
    await time.pass(1)
    expect(await turn).toMatchObject({ allowed: true })
  })

  it('ends with its signal', async () => {
    const { time, turns } = await turnsBy(DENIED)
    const controller = new AbortController()
    const turn = turns.acquire('a', { cost: 1, signal: controller.signal })
    await time.until(3000)
    controller.abort('enough')
    await expect(turn).rejects.toBe('enough')
    expect(time.pending).toEqual([])
  })
})

describe('decisionOf', () => {
  it('tells an answer in the form of a decision', () => {
    const common = { rule: 'github', limit: 10, resetAt: Date.UTC(2026, 0, 1, 0, 1) }
    expect(decisionOf(ALLOWED)).toEqual({ ...common, allowed: true, reason: 'allowed', remaining: 4, retryAfterMs: 0 })
    expect(decisionOf(DENIED)).toEqual({
      ...common,
      allowed: false,
      reason: 'limit',
      remaining: 0,
      retryAfterMs: 3000,
    })
    const open = { mode: 'open', cause: 'deadline', charged: 'unknown' } as const
    expect(decisionOf({ ...ALLOWED, remaining: null, resetAt: null, failure: open })).toMatchObject({
      limit: 10,
      remaining: null,
      resetAt: 0,
      failure: open,
    })
    const failure = { mode: 'closed', cause: 'deadline', charged: 'unknown' } as const
    const nothing = { limit: null, remaining: null, resetAt: null, retryAfter: null }
    const answer: CheckAnswer = { ...DENIED, ...nothing, reason: 'unavailable', version: 7, delayMs: 5, failure }
    const endless = Number.POSITIVE_INFINITY
    const none = { limit: endless, remaining: endless, resetAt: 0, retryAfterMs: endless }
    const reason = 'unavailable'
    expect(decisionOf(answer)).toEqual({
      rule: 'github',
      allowed: false,
      reason,
      ...none,
      version: 7,
      delayMs: 5,
      failure,
    })
  })
})
