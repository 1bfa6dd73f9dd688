import type { CheckAnswer, CheckRequest } from '@sluice/contract'
import { can, FUNCTION, type OptionForm } from '@sluice/core/options'
import type { NowMs, Sleep } from '@sluice/runtime/portable'
import { systemNowMs, systemSleep } from '@sluice/runtime/portable'
import { decisionOf } from './check-answers.ts'
import type { Client } from './client.ts'
import { checkOptions, optionTaker } from './errors/client-option-check.ts'
import type { FetchLimiter, FetchLimiterOptions, FetchLimiterResult } from './fetch/limited-fetch.ts'

/** The service to ask, and the request to send. */
export interface ServiceLimiterOptions {
  readonly client: Pick<Client, 'check'>
  /** The check for `cost` units of `key`. */
  readonly request: (key: string, cost: number) => CheckRequest
  /** Sleeps. Default: timers of the process. */
  readonly sleep?: Sleep | undefined
  /** Reads the wall clock. Default: the system clock. */
  readonly nowMs?: NowMs | undefined
}

const SERVICE_LIMITER = optionTaker({
  name: 'serviceLimiter',
  example: '{ client, request: (key, tokens) => ({ tenantId: key, resource: "/outbound", tokens }) }',
  forms: {
    client: {
      expected: 'a client, such as createClient({ url })',
      accepts: (value) => can(value, 'check') && !can(value, 'tryAcquire'),
      advise: (value) => (can(value, 'tryAcquire') ? 'It is a limiter: pass it to limitedFetch as it is.' : undefined),
      isNeeded: true,
    },
    request: {
      ...FUNCTION,
      expected: 'a function such as (key, tokens) => ({ tenantId: key, resource: "/outbound", tokens })',
      isNeeded: true,
    },
    sleep: FUNCTION,
    nowMs: FUNCTION,
  } satisfies Record<keyof ServiceLimiterOptions, OptionForm>,
  advise: (options) => (can(options, 'check') ? 'Write serviceLimiter({ client, request }).' : undefined),
})

/**
 * Waits for the limits of a service, so that many machines share one limit: checks, waits as long as the denial says,
 * and checks again. Callers are served roughly in order of arrival. Rejects like the client; in its failure mode `open`
 * every call proceeds. Throws for invalid options.
 */
export function serviceLimiter(options: ServiceLimiterOptions): FetchLimiter {
  checkOptions(options, SERVICE_LIMITER)
  const { client, request, sleep = systemSleep, nowMs = systemNowMs } = options

  async function acquire(key: string, { cost, signal, maxWait }: FetchLimiterOptions): Promise<FetchLimiterResult> {
    const deadlineMs = nowMs() + (maxWait ?? Number.POSITIVE_INFINITY)
    for (;;) {
      const answer: CheckAnswer = await client.check(request(key, cost), { signal })
      const { allowed, retryAfterMs, delayMs = 0 } = decisionOf(answer)
      // A denial without a wait would loop forever.
      const waitMs = allowed ? delayMs : Math.max(1, retryAfterMs)
      if (waitMs > 0) {
        if (waitMs > deadlineMs - nowMs() || waitMs === Number.POSITIVE_INFINITY)
          return { allowed: false, retryAfterMs: waitMs }
        await sleep(waitMs, signal)
      }
      if (allowed) return { allowed, retryAfterMs: 0 }
    }
  }

  return { acquire }
}
