import { isSluiceError, SluiceError } from '../errors.ts'
import type { Failure } from './store.ts'

/** What a failed call tells about the store: why there is no answer, and whether it may have changed something. */
export type StoreFailure = Pick<Failure, 'cause' | 'charged'>

/** The parts of a {@link StoreError}. */
export interface StoreErrorDetails {
  readonly because: Failure['cause']
  readonly problem: string
  readonly action?: string
  /** Whether only a part of the store is affected. Default: false. */
  readonly partial?: boolean
  /** The underlying error. */
  readonly cause?: unknown
}

/** A store that could not do what was asked. `failure` has the information of code and message as data. */
export class StoreError extends SluiceError {
  readonly failure: StoreFailure
  /** Whether only a part of the store is affected. */
  readonly partial: boolean

  constructor(charged: Failure['charged'], details: StoreErrorDetails) {
    super(charged === 'no' ? 'SLUICE_STORE_UNAVAILABLE' : 'SLUICE_OUTCOME_UNKNOWN', details)
    this.failure = { cause: details.because, charged }
    this.partial = details.partial ?? false
  }
}

/** `SLUICE_STORE_UNAVAILABLE`: nothing was sent, or the store rejected the call; nothing has changed. */
export function storeUnavailable(details: StoreErrorDetails): StoreError {
  return new StoreError('no', details)
}

/**
 * `SLUICE_OUTCOME_UNKNOWN`: it was sent, and no answer came; it may have happened or not. Sending it again may do it
 * twice.
 */
export function outcomeUnknown(details: StoreErrorDetails): StoreError {
  return new StoreError('unknown', details)
}

/**
 * The failure described by an error of a store; undefined for misuse, which is any other error of Sluice. Any other
 * error is one that the store should have wrapped: it failed, and the outcome is unknown.
 */
export function failureOf(error: unknown): StoreFailure | undefined {
  if (!isSluiceError(error)) return { cause: 'refused', charged: 'unknown' }
  const cause = (error as Partial<StoreError>).failure?.cause ?? 'unreachable'
  if (error.code === 'SLUICE_STORE_UNAVAILABLE') return { cause, charged: 'no' }
  return error.code === 'SLUICE_OUTCOME_UNKNOWN' ? { cause, charged: 'unknown' } : undefined
}

/** Whether an error affects only a part of the store: a key that is moving, one node of many. */
export function isPartialFailure(error: unknown): boolean {
  return isSluiceError(error) && (error as Partial<StoreError>).partial === true
}

const PROBLEMS: Readonly<Record<StoreFailure['cause'], string>> = {
  deadline: 'the store did not answer in time',
  unreachable: 'the store cannot be reached',
  refused: 'the store answered with an error',
  breaker: 'the store is not asked, because it failed just before',
}

/** The error for a caller if a call failed without a fallback: that of the store, if it is an error of Sluice. */
export function storeErrorOf({ cause, charged }: StoreFailure, error: unknown): unknown {
  if (isSluiceError(error)) return error
  const details = { because: cause, problem: PROBLEMS[cause], ...(error === undefined ? {} : { cause: error }) }
  return charged === 'no'
    ? storeUnavailable({ ...details, action: 'Nothing has changed: try again later.' })
    : outcomeUnknown({ ...details, action: 'It may have happened: look before trying again.' })
}
