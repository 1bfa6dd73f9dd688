import type {
  Answer,
  DescriptorDecision,
  DescriptorOptions,
  DescriptorRequest,
  Mode,
  PolicyDecision,
  PolicyEngineOptions,
  PolicyRequest,
  PolicyReservation,
  PolicyReserveOptions,
  PolicyVersions,
} from '@sluice/core'
import { PolicyEngine } from '@sluice/core'

/** Is told what an {@link ObservedEngine} decides, as it happens. */
export interface CheckObserver {
  /** Other rules are in force from now on. */
  used(versions: PolicyVersions): void
  /** A request was decided, and charged when it was allowed. */
  checked(request: PolicyRequest, decision: PolicyDecision, durationMs: number): void
  checkedDescriptors(domain: string, decision: DescriptorDecision, durationMs: number): void
  /** A request could not be decided. */
  failed(): void
}

/** How an {@link ObservedEngine} observes itself. */
export interface ObservationOptions {
  readonly observer: CheckObserver
  /** Milliseconds since some instant, with fractions, never going back. */
  readonly monotonicMs: () => number
}

/**
 * On a local store one decision in so many is timed, and stands for those that follow it: reading the clock twice would cost as
 * much as counting all the rest.
 */
const TIMED_EVERY = 16

/**
 * A policy engine that tells of every decision that charges: `check`, `reserve` and `decideDescriptors`, whichever door they
 * come through. `peek`, `explain` and `usage` only look, and are not told of. What the observer throws is ignored.
 */
export class ObservedEngine<M extends Mode = Mode> extends PolicyEngine<M> {
  readonly #observer: CheckObserver
  readonly #monotonicMs: () => number
  readonly #isLocal: boolean
  #untimed = 0
  #lastMs = 0

  constructor({ ruleSet, ...options }: PolicyEngineOptions<M>, { observer, monotonicMs }: ObservationOptions) {
    super(options)
    this.#observer = observer
    this.#monotonicMs = monotonicMs
    this.#isLocal = options.store.mode === 'sync'
    if (ruleSet !== undefined) this.use({ enforced: { number: 0, ruleSet } })
  }

  override use(versions: PolicyVersions): void {
    super.use(versions)
    this.#observer.used(versions)
  }

  override check(request: PolicyRequest): Answer<M, PolicyDecision> {
    if (!this.#isLocal) {
      return this.#observed(
        () => super.check(request),
        (decided, durationMs) => this.#observer.checked(request, decided, durationMs),
      )
    }
    const startedMs = this.#untimed === 0 ? this.#monotonicMs() : undefined
    let decision: PolicyDecision
    try {
      decision = super.check(request) as PolicyDecision
    } catch (error) {
      this.#fail()
      throw error
    }
    try {
      this.#observer.checked(request, decision, this.#durationSince(startedMs))
    } catch {
      // A check must not fail because somebody counts it.
    }
    return decision as Answer<M, PolicyDecision>
  }

  override reserve(
    request: PolicyRequest,
    options?: PolicyReserveOptions,
  ): Answer<M, PolicyReservation<M> | PolicyDecision> {
    return this.#observed(
      () => super.reserve(request, options),
      (taken, durationMs) => {
        this.#observer.checked(request, 'claim' in taken ? taken.decision : taken, durationMs)
      },
    )
  }

  override decideDescriptors(request: DescriptorRequest, options?: DescriptorOptions): Answer<M, DescriptorDecision> {
    return this.#observed(
      () => super.decideDescriptors(request, options),
      (decision, durationMs) => this.#observer.checkedDescriptors(request.domain, decision, durationMs),
    )
  }

  #durationSince(startedMs: number | undefined): number {
    this.#untimed = this.#untimed === TIMED_EVERY - 1 ? 0 : this.#untimed + 1
    if (startedMs !== undefined) this.#lastMs = Math.max(0, this.#monotonicMs() - startedMs)
    return this.#lastMs
  }

  /** Makes a decision that is timed and told of, now or later. */
  #observed<T>(decide: () => Answer<M, T>, tell: (decided: T, durationMs: number) => void): Answer<M, T> {
    const startedMs = this.#monotonicMs()
    const tellOf = (decided: T): T => {
      try {
        tell(decided, Math.max(0, this.#monotonicMs() - startedMs))
      } catch {
        // As above.
      }
      return decided
    }
    try {
      const answer = decide()
      if (!(answer instanceof Promise)) return tellOf(answer as T) as Answer<M, T>
      const told = answer.then(tellOf, (error: unknown) => {
        this.#fail()
        throw error
      })
      return told as Answer<M, T>
    } catch (error) {
      this.#fail()
      throw error
    }
  }

  #fail(): void {
    try {
      this.#observer.failed()
    } catch {
      // As above.
    }
  }
}
