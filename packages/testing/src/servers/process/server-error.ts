/** Every code of a {@link ServerError} and its meaning. */
export const SERVER_ERRORS = {
  SLUICE_TESTING_PROGRAM_MISSING: 'a program that the servers of a test are made of is not installed',
  SLUICE_TESTING_PORT_TAKEN: 'another process listens on the port that a server of a test was given',
  SLUICE_TESTING_START_FAILED: 'a server of a test ended before it answered',
  SLUICE_TESTING_NOT_RUNNING: 'a server of a test was used while it does not run',
  SLUICE_TESTING_NO_REPLY: 'the connection to a server ended, or stayed silent, before the reply was complete',
  SLUICE_TESTING_TOO_SLOW: 'what a test waits for did not happen in time',
  SLUICE_TESTING_UNKNOWN_NODE: 'the cluster or the group has no such node',
} as const

/** One of the codes in {@link SERVER_ERRORS}. */
export type ServerErrorCode = keyof typeof SERVER_ERRORS

/** A test server could not be started, reached or brought into the requested state. */
export class ServerError extends Error {
  override readonly name = 'ServerError'
  readonly code: ServerErrorCode

  /** @param message - what was found, what was expected, what to do */
  constructor(code: ServerErrorCode, message: string, cause?: unknown) {
    super(`${code}: ${message}`, cause === undefined ? undefined : { cause })
    this.code = code
  }
}
