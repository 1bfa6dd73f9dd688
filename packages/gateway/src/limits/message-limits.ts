import type { Clock, Random, Timers } from '@sluice/core'
import type { PolicyEngine, PolicyRequest } from '@sluice/core/policy'
import { createHttpLimiter, type HttpLimiter, type HttpRequest, type MisuseListener } from '@sluice/middleware'
import type { Caller } from '../identity/caller.ts'

/** What message limits are made of. */
export interface MessageLimitsOptions {
  readonly engine: PolicyEngine
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly onError: (error: unknown) => void
  readonly warn: MisuseListener
}

/** Status of what was passed on. */
const PASSED_ON = 200

/** Units that the messages of a caller take. The limiter sees them as a request. */
class Taking implements HttpRequest {
  readonly method = 'GET'
  readonly url = '/'
  readonly route = undefined
  readonly peerAddress = undefined
  readonly caller: Caller
  readonly resource: string
  readonly units: number

  constructor(caller: Caller, resource: string, units: number) {
    this.caller = caller
    this.resource = resource
    this.units = units
  }

  header(): undefined {
    return undefined
  }
}

/**
 * Counts what callers send over WebSockets by the rules of the engine: over all connections of a caller and, with a
 * shared store, over all nodes.
 */
export class MessageLimits {
  readonly #limiter: HttpLimiter<Taking>
  readonly #timers: Timers

  constructor({ engine, clock, timers, random, onError, warn }: MessageLimitsOptions) {
    this.#timers = timers
    this.#limiter = createHttpLimiter<Taking>(
      {
        engine,
        identify: ({ caller, resource }) => requestOf(caller, resource),
        cost: ({ units }) => units,
        ...{ onError, warn, clock, timers, random },
      },
      { name: 'gateway', request: (taking) => taking },
    )
  }

  /**
   * Takes units of a resource. True if they are allowed, which is known at once unless the store is remote or a rule
   * asks to wait. Throws or rejects if that cannot be decided.
   */
  take(caller: Caller, resource: string, units: number): boolean | Promise<boolean> {
    return this.#limiter.begin<boolean>(new Taking(caller, resource, units), (outcome) => {
      if (!outcome.allowed) return false
      // Slots are for the time of a decision only; the connection holds those of its own request.
      outcome.finish?.(PASSED_ON)
      const { delayMs } = outcome
      if (delayMs === 0) return true
      return new Promise((resolve) => void this.#timers.schedule(delayMs, () => resolve(true)))
    })
  }

  close(): Promise<void> {
    return this.#limiter.close()
  }
}

function requestOf({ ip, user, apiKey, tenant, tier }: Caller, resource: string): Partial<PolicyRequest> {
  return {
    resource,
    ...(ip !== undefined && { ip }),
    ...(user !== undefined && { user }),
    ...(apiKey !== undefined && { apiKey }),
    ...(tenant !== undefined && { tenant }),
    ...(tier !== undefined && { tier }),
  }
}
