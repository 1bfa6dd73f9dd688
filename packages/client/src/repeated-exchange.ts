import type { Random, RetryNotice } from '@sluice/runtime/portable'
import { retry } from '@sluice/runtime/portable'
import { isClientError } from './client-error.ts'
import { exchange, type ServiceAddress, type ServiceRequest } from './exchange.ts'
import { mayRepeat } from './repeat-safety.ts'
import type { TryOptions } from './retry-options.ts'

/** How calls of the service are tried again. */
export interface ClientRetryOptions extends TryOptions {
  /** Told of every failure that is followed by another try, before the wait. */
  readonly onRetry?: ((notice: RetryNotice) => void) | undefined
}

/** Whom to ask, and how often. */
export interface RepeatedService extends ServiceAddress {
  readonly random: Random
  readonly retry: ClientRetryOptions
}

/** How long a call may take. */
export interface TimeBudget {
  /** Aborts when it is used up, or when nobody wants the answer any more. */
  readonly signal: AbortSignal
  /** Milliseconds that are left, 0 or more. */
  leftMs(): number
}

/**
 * Sends a request, again where {@link mayRepeat} says so, until it is answered, the tries are used up, or the next wait would
 * be longer than the time that is left: then it fails at once, with what it failed with last.
 */
export async function repeatedExchange(
  service: RepeatedService,
  request: ServiceRequest,
  budget: TimeBudget,
): Promise<unknown> {
  const { maxTries, baseMs, capMs, onRetry } = service.retry
  let last: RetryNotice | undefined
  return await retry(() => exchange(service, request, budget.signal), {
    maxTries,
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
}
