/**
 * All error codes of the service process. A code is never reused for another meaning. Codes of HTTP responses are in
 * `@sluice/contract`.
 */
export const SERVICE_ERRORS = {
  SLUICE_SERVICE_INVALID_SETTING: 'a setting has a value that cannot be used',
  SLUICE_SERVICE_PORT_IN_USE: 'the port is taken by another program',
  SLUICE_SERVICE_PORT_FORBIDDEN: 'the system does not let this user listen on the port',
  SLUICE_SERVICE_HOST_UNAVAILABLE: 'the host is not an address of this machine',
  SLUICE_SERVICE_LISTEN_FAILED: 'the server could not listen',
  SLUICE_SERVICE_DATA_DIR_IN_USE: 'the data folder is used by another process',
  SLUICE_SERVICE_DATA_DIR_UNUSABLE: 'the data folder cannot be used',
  SLUICE_SERVICE_ADMIN_KEY_FILE_UNUSABLE: 'the file of the first API key cannot be used',
  SLUICE_SERVICE_THREAD_FAILED: 'a thread that answers requests could not be started',
} as const

/** One of the codes of {@link SERVICE_ERRORS}. */
export type ServiceErrorCode = keyof typeof SERVICE_ERRORS

/** One problem, as two phrases. */
export interface ServiceProblem {
  readonly received: string
  readonly expected: string
}

/** Details of an error; each is a phrase of the message. */
export interface ServiceErrorDetails {
  readonly received: string
  readonly expected: string
  /** What to do, as a sentence. */
  readonly action: string
  /** All problems. Default: `received` and `expected`. */
  readonly problems?: readonly ServiceProblem[]
  readonly cause?: unknown
}

/** The process cannot run with its settings or environment. Recognise it by `code`. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError'
  readonly code: ServiceErrorCode
  readonly received: string
  readonly expected: string
  readonly action: string
  readonly problems: readonly ServiceProblem[]

  constructor(code: ServiceErrorCode, { received, expected, action, problems, cause }: ServiceErrorDetails) {
    super(
      `${code}: ${SERVICE_ERRORS[code]}. Received ${received}; expected ${expected}. ${action}`,
      cause === undefined ? undefined : { cause },
    )
    this.code = code
    this.received = received
    this.expected = expected
    this.action = action
    this.problems = problems ?? [{ received, expected }]
  }
}

/** Whether `value` is an error of the service process, judged by its code. */
export function isServiceError(value: unknown): value is ServiceError {
  if (typeof value !== 'object' || value === null || !('code' in value)) return false
  return typeof value.code === 'string' && Object.hasOwn(SERVICE_ERRORS, value.code)
}
