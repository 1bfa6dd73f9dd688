import type { Random, RetryNotice } from '@sluice/runtime/portable'
import { RetriesExhausted, retry } from '@sluice/runtime/portable'
import { isClientError, retriesExhausted } from '../errors/client-error.ts'
import { type ServiceConnection, type ServiceRequest, sendRequest } from '../http/send-request.ts'
import type { RetryLimits } from './retry-options.ts'
import { mayRepeat } from './retry-safety.ts'

/** How calls of the service are retried. */
export interface ClientRetryOptions extends RetryLimits {
  /** Called for every failure that is retried, before the wait. */
  readonly onRetry?: ((notice: RetryNotice) => void) | undefined
}

/** Whom to ask, and how often. */
export interface RetryingService extends ServiceConnection {
  readonly random: Random
  readonly retry: ClientRetryOptions
}

/** How long a call may take. */
export interface TimeBudget {
  /** Aborts when it is used up, or when no caller waits for the answer any more. */
  readonly signal: AbortSignal
  /** Milliseconds that are left, 0 or more. */
  leftMs(): number
}

/**
 * Sends a request, again where {@link mayRepeat} says so, until it is answered. Rejects with
 * `SLUICE_CLIENT_RETRIES_EXHAUSTED` when the last retry failed too. When the next wait would be longer than the time
 * that is left, it rejects at once with the last error.
 */
export async function sendWithRetry(
  service: RetryingService,
  request: ServiceRequest,
  budget: TimeBudget,
): Promise<unknown> {
  const { maxRetries, baseMs, capMs, onRetry } = service.retry
  let last: RetryNotice | undefined
  const answer = retry(() => sendRequest(service, request, budget.signal), {
    maxRetries,
    baseMs,
    capMs,
    random: service.random,
    signal: budget.signal,
    shouldRetry: (error) => mayRepeat(request, error),
    retryAfterMs: (error) => (isClientError(error) ? error.retryAfterMs : undefined),
    onRetry: (notice) => {
      last = notice
    },
    sleep: async (delayMs, signal) => {
      if (delayMs >= budget.leftMs()) throw last?.error
      if (last !== undefined) onRetry?.(last)
      await service.sleep(delayMs, signal)
    },
  })
  return await answer.catch((error: unknown) => {
    throw error instanceof RetriesExhausted ? retriesExhausted(error.calls, error.lastError) : error
  })
}
