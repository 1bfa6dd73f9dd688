import { SluiceError } from '@sluice/core'
import { notWritable } from '../sql-driver.ts'

/** A statement that failed, or got no answer. What it was is its `cause`. */
export class StatementError extends Error {
  override readonly name = 'StatementError'
  readonly statement: string

  constructor(statement: string, options: { readonly cause: unknown }) {
    super(`failed: ${statement}`, options)
    this.statement = statement
  }

  /** Whether the server has answered, and not with its end: the connection can be used on. */
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

/** Whether the same transaction may succeed when it is run again: the server has given it up for the sake of another. */
export function isWorthRepeating(error: unknown): boolean {
  const code = error instanceof StatementError ? sqlState(error.cause) : undefined
  return code === SERIALIZATION_FAILURE || code === DEADLOCK
}

/** What is thrown for a failed statement; anything else is passed on. `place`: which database, without its password. */
export function postgresError(error: unknown, place: string): unknown {
  if (!(error instanceof StatementError)) return error
  const { cause, statement } = error
  const code = sqlState(cause)
  if (code === UNIQUE_VIOLATION || code === FOREIGN_KEY_VIOLATION) {
    return new SluiceError('SLUICE_CONFLICT', {
      problem: 'the change does not fit to what is in the database',
      action: 'Read again what is there, and repeat the change.',
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
    return 'Its last answer was lost: look whether the change is there before you repeat it.'
  if (code === CANCELED)
    return 'Nothing was changed. It took longer than the deadline, perhaps because another node writes much: try again.'
  return 'Nothing was changed. Look whether the server runs and can be reached.'
}

/** The code that the server gave, if it answered. */
function sqlState(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}

/** Several addresses of one host, all of which failed, make an error without a message of its own. */
function summary(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(summary).join('; ')
  return error instanceof Error ? error.message : String(error)
}
