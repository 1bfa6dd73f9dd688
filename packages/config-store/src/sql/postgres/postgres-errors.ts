import { SluiceError } from '@sluice/core'
import { notWritable } from '../sql-driver.ts'

/** A failed statement, or one without a reply. `cause` has the original error. */
export class StatementError extends Error {
  override readonly name = 'StatementError'
  readonly statement: string

  constructor(statement: string, options: { readonly cause: unknown }) {
    super(`failed: ${statement}`, options)
    this.statement = statement
  }

  /** Whether the server replied with an ordinary error, so that the connection stays usable. */
  get isConnectionUsable(): boolean {
    const code = sqlState(this.cause)
    return code !== undefined && !code.startsWith('57P') && !code.startsWith('08')
  }
}

const SERIALIZATION_FAILURE = '40001'
const DEADLOCK = '40P01'
const UNIQUE_VIOLATION = '23505'
const FOREIGN_KEY_VIOLATION = '23503'
const CANCELED = '57014'
const DISK_FULL = '53100'
const READ_ONLY = '25006'

/** Whether the transaction may succeed if it is run again: the server aborted it in favor of another. */
export function isWorthRepeating(error: unknown): boolean {
  const code = error instanceof StatementError ? sqlState(error.cause) : undefined
  return code === SERIALIZATION_FAILURE || code === DEADLOCK
}

/**
 * Converts a failed statement to a SluiceError. Other errors are returned unchanged. `place`: the database, without its
 * password.
 */
export function postgresError(error: unknown, place: string): unknown {
  if (!(error instanceof StatementError)) return error
  const { cause, statement } = error
  const code = sqlState(cause)
  if (code === UNIQUE_VIOLATION || code === FOREIGN_KEY_VIOLATION) {
    return new SluiceError('SLUICE_CONFLICT', {
      problem: 'the change conflicts with the content of the database',
      action: 'Read the current state, and repeat the change.',
      cause,
    })
  }
  if (code === DISK_FULL) return notWritable('full', cause)
  if (code === READ_ONLY) return notWritable('read-only', cause)
  return new SluiceError('SLUICE_CONFIG_UNAVAILABLE', {
    problem: `the PostgreSQL database ${place} cannot be used: ${summary(cause)}`,
    action: actionFor(code, statement),
    cause,
  })
}

function actionFor(code: string | undefined, statement: string): string {
  if (code === undefined && statement === 'COMMIT')
    return 'The reply to COMMIT was lost: check whether the change was made before you repeat it.'
  if (code === CANCELED)
    return 'Nothing was changed. It took longer than the deadline, perhaps because another node writes much: try again.'
  return 'Nothing was changed. Check that the server is running and reachable.'
}

/** The SQLSTATE, if the server replied. */
function sqlState(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}

/** An AggregateError (all addresses of a host failed) has no message of its own. */
function summary(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(summary).join('; ')
  return error instanceof Error ? error.message : String(error)
}
