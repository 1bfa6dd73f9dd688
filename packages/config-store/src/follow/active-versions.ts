import { isSluiceError } from '@sluice/core'
import type { RuleSetError, RuleSetProblem } from '@sluice/core/policy'
import type { VersionsInForce } from '../config-store.ts'
import { type ConfigObserver, type RefusedVersion, tell } from './config-follower.ts'
import type { ConfigTarget } from './config-target.ts'

/** No active version. */
export const NO_VERSIONS: VersionsInForce = Object.freeze({ enforced: undefined, candidate: undefined })

/** Activates versions in the target, and records which of them it accepted. */
export class ActiveVersions {
  readonly #target: Pick<ConfigTarget, 'useVersions'>
  readonly #observe: ConfigObserver | undefined
  #current: VersionsInForce = NO_VERSIONS
  #refused: readonly RefusedVersion[] = []

  constructor(target: Pick<ConfigTarget, 'useVersions'>, observe: ConfigObserver | undefined) {
    this.#target = target
    this.#observe = observe
  }

  /** The versions that the target accepted last. */
  get current(): VersionsInForce {
    return this.#current
  }

  /** The versions that it rejected last. */
  get refused(): readonly RefusedVersion[] {
    return this.#refused
  }

  /** Whether a version should be enforced and none is. */
  get isMissing(): boolean {
    return this.#current.enforced === undefined && this.#refused.some(({ stage }) => stage === 'enforced')
  }

  /**
   * Activates versions. A candidate that cannot be used is left out; an enforced version that cannot be used changes
   * nothing. A candidate never blocks the enforced version, which may be a rollback. Returns why the enforced version
   * cannot be used; undefined on success.
   */
  activate(versions: VersionsInForce): unknown {
    // An enforced version is only ever replaced. A feed without one has lost its data and must not lift all limits.
    if (versions.enforced === undefined && this.#current.enforced !== undefined) {
      const error = new Error('the source no longer has an enforced version')
      this.refuse(0, error)
      return error
    }
    const problem = this.#try(versions)
    if (problem === undefined) {
      this.#refused = []
      return undefined
    }
    const { enforced, candidate } = versions
    const ownProblem = candidate === undefined ? problem : this.#try({ enforced, candidate: undefined })
    if (ownProblem === undefined) this.#note('candidate', candidate!.number, problem.error)
    else this.refuse(enforced?.number ?? 0, ownProblem.error)
    return ownProblem?.error
  }

  /** Records that a version should be enforced and cannot be used. */
  refuse(number: number, error: unknown): void {
    this.#note('enforced', number, error)
  }

  /** Confirms that the active versions are the intended ones. */
  confirm(): void {
    this.#refused = []
  }

  /** Activates versions in place of the rejected ones, which stay recorded. */
  fallBack(versions: VersionsInForce): void {
    this.#try(versions)
  }

  #try(versions: VersionsInForce): { readonly error: unknown } | undefined {
    try {
      this.#target.useVersions(versions)
      this.#current = versions
      return undefined
    } catch (error) {
      return { error }
    }
  }

  #note(stage: RefusedVersion['stage'], number: number, error: unknown): void {
    this.#refused = [{ number, stage, reason: reasonOf(error), problems: problemsOf(error) }]
    tell(this.#observe, { type: 'refused', version: number, error })
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function problemsOf(error: unknown): readonly RuleSetProblem[] {
  return isSluiceError(error, 'SLUICE_INVALID_RULE_SET') ? ((error as RuleSetError).problems ?? []) : []
}
