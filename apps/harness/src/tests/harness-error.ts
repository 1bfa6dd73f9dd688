/** Every error code of the harness and what it means. A code is never reused for another meaning. */
export const HARNESS_ERRORS = {
  SLUICE_HARNESS_INVALID_OPTION: 'an option cannot be used',
  SLUICE_HARNESS_CALLER_FAILED: 'a thread or process did not make its requests to the end',
  SLUICE_HARNESS_CALLERS_STUCK: 'the threads or processes did not answer in time',
  SLUICE_HARNESS_TARGET_FAILED: 'the target cannot be tested',
  SLUICE_HARNESS_REDIS_UNAVAILABLE: 'there is no Redis to run on',
} as const

/** One of the codes of {@link HARNESS_ERRORS}. */
export type HarnessErrorCode = keyof typeof HARNESS_ERRORS

/** What an error tells besides its code; each is a phrase of the message. */
export interface HarnessErrorDetails {
  /** What was found. */
  readonly received: string
  /** What would have been right. */
  readonly expected: string
  readonly cause?: unknown
}

/** The harness cannot run with its options, or could not finish. A wrong count is not an error but a result. */
export class HarnessError extends Error {
  override readonly name = 'HarnessError'
  readonly code: HarnessErrorCode
  readonly received: string
  readonly expected: string

  constructor(code: HarnessErrorCode, { received, expected, cause }: HarnessErrorDetails) {
    super(
      `${code}: ${HARNESS_ERRORS[code]}. Received ${received}; expected ${expected}.`,
      cause === undefined ? undefined : { cause },
    )
    this.code = code
    this.received = received
    this.expected = expected
  }
}

/** Whether `value` is an error of the harness, going by its code; with `code`, only that one. */
export function isHarnessError(value: unknown, code?: HarnessErrorCode): value is HarnessError {
  if (typeof value !== 'object' || value === null || !('code' in value)) return false
  if (typeof value.code !== 'string' || !Object.hasOwn(HARNESS_ERRORS, value.code)) return false
  return code === undefined || value.code === code
}
