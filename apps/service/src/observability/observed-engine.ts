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

/** Observes the decisions of an {@link ObservedEngine}. */
export interface CheckObserver {
  /** The rules have changed. */
  used(versions: PolicyVersions): void
  /** A request was decided, and charged if allowed. */
  checked(request: PolicyRequest, decision: PolicyDecision, durationMs: number): void
  checkedDescriptors(domain: string, decision: DescriptorDecision, durationMs: number): void
  /** A request could not be decided. */
  failed(): void
}

/** Options of {@link ObservedEngine}. */
export interface ObservationOptions {
  readonly observer: CheckObserver
  /** Monotonic milliseconds, with fractions. */
  readonly monotonicMs: () => number
}

/**
 * A policy engine that reports every decision that charges: `check`, `reserve` and `decideDescriptors`, for all
 * listeners. `peek`, `explain` and `usage` charge nothing and are not reported. Errors of the observer are ignored.
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

  /** Times a decision and reports it. */
  #observed<T>(decide: () => Answer<M, T>, tell: (decided: T, durationMs: number) => void): Answer<M, T> {
    const startedMs = this.#monotonicMs()
    const tellOf = (decided: T): T => {
      try {
        tell(decided, Math.max(0, this.#monotonicMs() - startedMs))
      } catch {
        // A check must not fail because of its observer.
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
