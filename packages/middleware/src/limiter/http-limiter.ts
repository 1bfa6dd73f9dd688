import type { DecisionLike } from '@sluice/contract'
import type { Store } from '@sluice/core'
import { systemClock, systemRandom, systemTimers } from '@sluice/core'
import { spaceOf } from '@sluice/core/internal'
import { DenialWriter } from '../http/denial-response.ts'
import type { HttpRequest } from '../http/http-request.ts'
import type { MaybePromise } from '../http/maybe-promise.ts'
import { andThen } from '../http/maybe-promise.ts'
import type { Admission, HttpOutcome } from '../http/request-outcome.ts'
import { HeaderWriter } from '../http/response-headers.ts'
import { compileIpv6 } from '../identity/address-tiers.ts'
import { compileTrust } from '../identity/client-address.ts'
import { RequestReader } from '../identity/request-reader.ts'
import { MisuseDetector } from '../misuse/misuse-detector.ts'
import { checkOptions } from '../options/check-rate-limit-options.ts'
import type { RateLimitOptions, RuleFields } from '../options/rate-limit-options.ts'
import { RULE_FIELDS } from '../options/rate-limit-options.ts'
import { ChargeSettler, warnOnce } from './charge-settler.ts'
import type { Charge, Checker } from './checker.ts'
import { createChecker } from './create-checker.ts'
import type { RequestBatcher } from './request-batcher.ts'

/** Connects a framework to the limiter. */
export interface HttpAdapter<Context> {
  /** Name of the framework, such as `express`. */
  readonly name: string
  /** Options of this adapter in addition to {@link RateLimitOptions} and `onLimited`. */
  readonly ownOptions?: readonly string[]
  /** The view of a request. Called once per request. */
  request(context: Context): HttpRequest
  /** Continues requests of one event loop turn together. Default: each continues at once. */
  readonly batcher?: RequestBatcher
}

/** Limits the requests of a framework. */
export interface HttpLimiter<Context> {
  /**
   * Decides a request. Synchronous if the store is local, no option is asynchronous, and the batcher does not delay it.
   * Throws or rejects if an option does, or if the store is unavailable without a failure mode.
   */
  begin(context: Context): MaybePromise<HttpOutcome>
  /** Decides a request and continues with the outcome. Saves one promise on a remote store. */
  begin<R>(context: Context, settle: (outcome: HttpOutcome) => MaybePromise<R>): MaybePromise<R>
  /** Frees what the limiter created, which is the default store. Objects passed in stay open. Safe to call again. */
  close(): Promise<void>
}

const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({})

/** Outcome of a skipped request. */
const SKIPPED: Admission = Object.freeze({
  allowed: true,
  decision: undefined,
  headers: NO_HEADERS,
  delayMs: 0,
  finish: undefined,
})

/**
 * Creates a limiter for the framework of `adapter`. Throws a coded error for unknown, contradictory or invalid options.
 */
export function createHttpLimiter<Context>(
  options: RateLimitOptions<Context>,
  adapter: HttpAdapter<Context>,
): HttpLimiter<Context> {
  checkOptions(options, adapter)
  return new CheckingLimiter(options, adapter)
}

class CheckingLimiter<Context> implements HttpLimiter<Context> {
  readonly #adapter: HttpAdapter<Context>
  readonly #checker: Checker<Context>
  readonly #skip: RateLimitOptions<Context>['skip']
  readonly #onDecision: RateLimitOptions<Context>['onDecision']
  readonly #shadow: boolean
  readonly #headers: HeaderWriter
  readonly #denials: DenialWriter
  readonly #end: ChargeSettler<Context>
  readonly #reader: RequestReader<Context>
  readonly #misuse: MisuseDetector
  /** Whether every request counts by its address, possibly among other keys. */
  readonly #countsAddress: boolean
  readonly #ownStore: Store | undefined

  constructor(options: RateLimitOptions<Context>, adapter: HttpAdapter<Context>) {
    const { clock = systemClock, random = systemRandom, timers = systemTimers } = options
    const trust = compileTrust(options.trustProxy)
    this.#adapter = adapter
    this.#reader = new RequestReader(trust, compileIpv6(options.ipv6), (request, address) => {
      // What has no address, the rules of an engine may count by something else.
      if (address === undefined && options.engine !== undefined) return
      if (this.#misuse.isWatching) this.#misuse.meetAddress(request, address)
    })
    const { checker, counters, name, isNamed, isLocal, ownStore } = createChecker(options, {
      reader: this.#reader,
      clock,
      random,
    })
    this.#checker = checker
    this.#ownStore = ownStore
    this.#skip = options.skip
    this.#onDecision = options.onDecision
    this.#shadow = options.shadow ?? false
    this.#headers = new HeaderWriter({
      profile: options.headers ?? 'legacy',
      jitter: options.jitter ?? 0,
      clock,
      random,
    })
    this.#denials = new DenialWriter(options.status ?? 429)
    const { refund, actualCost, onError = warnOnce() } = options
    this.#end = new ChargeSettler({ refund, actualCost, timers, onError })
    this.#countsAddress = countsAddress(options)
    this.#misuse = new MisuseDetector({ name, isNamed, counters, trust, warn: options.warn })
    this.#misuse.shortWindow(windowsOf(options))
    if (isLocal) this.#misuse.memoryInCluster()
    if (options.store === undefined) return
    const isGiven = options.name !== undefined || options.rules !== undefined
    this.#misuse.sharedName({ space: spaceOf(options.store), rule: ruleText(options), isGiven })
  }

  begin(context: Context): MaybePromise<HttpOutcome>
  begin<R>(context: Context, settle: (outcome: HttpOutcome) => MaybePromise<R>): MaybePromise<R>
  begin(context: Context, settle: (outcome: HttpOutcome) => unknown = asItIs): unknown {
    const request = this.#adapter.request(context)
    if (this.#skip === undefined) return this.#ask(context, request, settle)
    const go = (isSkipped: boolean): unknown => (isSkipped ? settle(SKIPPED) : this.#ask(context, request, settle))
    return andThen(this.#skip(context, request), go)
  }

  async close(): Promise<void> {
    this.#misuse.close()
    await this.#checker.close()
    await this.#ownStore?.close()
  }

  #ask(context: Context, request: HttpRequest, settle: (outcome: HttpOutcome) => unknown): unknown {
    if (this.#misuse.watches()) this.#look(context, request)
    let isNow = true
    const asked = this.#checker.ask(context, request, (charge) => {
      const outcome = this.#outcome(charge, context)
      // What a remote store answers comes together anyway.
      const together = isNow ? this.#adapter.batcher?.join() : undefined
      return together === undefined ? settle(outcome) : together.then(() => settle(outcome))
    })
    isNow = false
    return asked
  }

  /** Checks for misuse. */
  #look(context: Context, request: HttpRequest): void {
    this.#misuse.meet(context as object)
    if (this.#countsAddress) this.#misuse.meetAddress(request, this.#reader.addressOf(request))
  }

  #outcome(charge: Charge, context: Context): HttpOutcome {
    const { decision } = charge
    if (decision.failure !== undefined) this.#misuse.storeAway(decision.failure)
    const finish = decision.allowed ? this.#end.watch(charge, context) : undefined
    try {
      return this.#tell(decision, context, finish)
    } catch (error) {
      finish?.(0)
      throw error
    }
  }

  #tell(decision: DecisionLike, context: Context, finish: ((status: number) => void) | undefined): HttpOutcome {
    this.#onDecision?.(decision, context)
    if (this.#shadow) return { allowed: true, decision, headers: NO_HEADERS, delayMs: 0, finish }
    const headers = this.#headers.write(decision, context, this.#checker.description)
    if (!decision.allowed) return this.#denials.deny(decision, headers)
    return { allowed: true, decision, headers, delayMs: decision.delayMs ?? 0, finish }
  }
}

function asItIs(outcome: HttpOutcome): HttpOutcome {
  return outcome
}

/** A string that differs for different rules. */
function ruleText(options: RateLimitOptions<never>): string {
  const fields = Object.fromEntries(RULE_FIELDS.map((field) => [field, options[field]]))
  return JSON.stringify({ ...fields, rules: options.rules })
}

function countsAddress({ key = 'ip', rules, engine }: RateLimitOptions<never>): boolean {
  if (engine !== undefined) return false
  const keys = rules === undefined ? [key] : Object.values(rules).map((use) => use.key ?? key)
  return keys.includes('ip')
}

/** The windows of all rules, as written. */
function windowsOf({ window, windows, rules = {} }: RateLimitOptions<never>): readonly unknown[] {
  const ofRules = Object.values(rules as Readonly<Record<string, RuleFields>>).flatMap(windowsOf)
  return [window, ...(windows ?? []).map((spec) => spec.window), ...ofRules]
}
