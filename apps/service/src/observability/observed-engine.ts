import type {
  DescriptorDecision,
  DescriptorOptions,
  DescriptorRequest,
  PolicyDecision,
  PolicyEngineOptions,
  PolicyRequest,
  PolicyReservation,
  PolicyReserveOptions,
  PolicyVersions,
} from '@sluice/core/policy'
import { PolicyEngine } from '@sluice/core/policy'
import type { Answer, Mode } from '@sluice/core/store'

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
 * A policy engine that tells of every decision that charges: `check`, `reserve` and `decideDescriptors`, whichever listener they
 * come through. `peek`, `explain` and `usage` only look, and are not told of. What the observer throws is ignored.
 */
export class ObservedEngine<M extends Mode = Mode> extends PolicyEngine<M> {
  readonly #observer: CheckObserver
  readonly #monotonicMs: () => number

  constructor({ ruleSet, ...options }: PolicyEngineOptions<M>, { observer, monotonicMs }: ObservationOptions) {
    super(options)
    this.#observer = observer
    this.#monotonicMs = monotonicMs
    if (ruleSet !== undefined) this.use({ enforced: { number: 0, ruleSet } })
  }

  override use(versions: PolicyVersions): void {
    super.use(versions)
    this.#observer.used(versions)
  }

  override check(request: PolicyRequest): Answer<M, PolicyDecision> {
    return this.#observed(
      () => super.check(request),
      (decision, durationMs) => this.#observer.checked(request, decision, durationMs),
    )
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

  /** Makes a decision that is timed and told of, now or later. */
  #observed<T>(decide: () => Answer<M, T>, tell: (decided: T, durationMs: number) => void): Answer<M, T> {
    const startedMs = this.#monotonicMs()
    const tellOf = (decided: T): T => {
      try {
        tell(decided, Math.max(0, this.#monotonicMs() - startedMs))
      } catch {
        // A check must not fail because somebody counts it.
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
