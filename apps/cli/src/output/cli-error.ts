import { isClientError } from '@sluice/client'
import type { FieldProblem } from '@sluice/contract'

/** Exit codes. They are public interface and never change. */
export const EXIT_CODES = {
  ok: 0,
  failed: 1,
  usage: 2,
  denied: 3,
  unreachable: 4,
  unauthorized: 5,
  interrupted: 130,
} as const

/** One of {@link EXIT_CODES}. */
export type ExitCode = (typeof EXIT_CODES)[keyof typeof EXIT_CODES]

/** Meaning of each exit code, for the help. */
export const EXIT_CODE_MEANINGS: Readonly<Record<ExitCode, string>> = {
  0: 'success',
  1: 'failure',
  2: 'invalid command line or file',
  3: 'check: the call is denied',
  4: 'the service is unreachable',
  5: 'API key missing, invalid, or lacking permission',
  130: 'interrupted',
}

/** An error code of the command line. */
export type CliErrorCode =
  | 'SLUICE_CLI_USAGE'
  | 'SLUICE_CLI_INVALID_FILE'
  | 'SLUICE_CLI_NOT_FOUND'
  | 'SLUICE_CLI_NOT_STAGED'
  | 'SLUICE_CLI_WOULD_REPLACE'
  | 'SLUICE_CLI_PART_DONE'
  | 'SLUICE_CLI_PROGRAM_MISSING'
  | 'SLUICE_CLI_PROGRAM_FAILED'
  | 'SLUICE_CLI_NODE_TOO_OLD'

/** Title and exit code of every error. A code never gets another meaning; messages may change. */
export const CLI_ERRORS: Readonly<Record<CliErrorCode, { readonly title: string; readonly exitCode: ExitCode }>> = {
  SLUICE_CLI_USAGE: { title: 'the command line is invalid', exitCode: EXIT_CODES.usage },
  SLUICE_CLI_INVALID_FILE: { title: 'a file is invalid', exitCode: EXIT_CODES.usage },
  SLUICE_CLI_NOT_FOUND: { title: 'not found', exitCode: EXIT_CODES.failed },
  SLUICE_CLI_NOT_STAGED: {
    title: 'a new version could not be staged',
    exitCode: EXIT_CODES.failed,
  },
  SLUICE_CLI_WOULD_REPLACE: {
    title: 'enforced rules would be replaced without review',
    exitCode: EXIT_CODES.failed,
  },
  SLUICE_CLI_PART_DONE: { title: 'only a part was done', exitCode: EXIT_CODES.failed },
  SLUICE_CLI_PROGRAM_MISSING: { title: 'a program is not installed', exitCode: EXIT_CODES.failed },
  SLUICE_CLI_PROGRAM_FAILED: { title: 'a program failed without an error code', exitCode: EXIT_CODES.failed },
  // Printed by bin/sluice.mjs, which imports nothing.
  SLUICE_CLI_NODE_TOO_OLD: { title: 'the version of Node is too old', exitCode: EXIT_CODES.failed },
}

/** An error that the user can act on. */
export class CliError extends Error {
  override readonly name = 'CliError'
  readonly code: CliErrorCode
  /** What was received, what was expected, what to do. No secrets. */
  readonly detail: string
  /** Every problem of a file. */
  readonly errors: readonly FieldProblem[]

  constructor(
    code: CliErrorCode,
    details: { readonly detail: string; readonly errors?: readonly FieldProblem[]; readonly cause?: unknown },
  ) {
    super(
      `${code}: ${CLI_ERRORS[code].title}. ${details.detail}`,
      'cause' in details ? { cause: details.cause } : undefined,
    )
    this.code = code
    this.detail = details.detail
    this.errors = details.errors ?? []
  }

  get exitCode(): ExitCode {
    return CLI_ERRORS[this.code].exitCode
  }
}

/** An invalid command line. */
export function usageError(detail: string): CliError {
  return new CliError('SLUICE_CLI_USAGE', { detail })
}

/** An error as it is printed. */
interface Failure {
  readonly code: string
  /** What happened, and what to do. */
  readonly detail: string
  /** HTTP status; undefined if the service did not answer or was not called. */
  readonly status: number | undefined
  /** Every problem of the request or the file. */
  readonly errors: readonly FieldProblem[]
  readonly exitCode: ExitCode
}

/** Converts an error to a failure; undefined for a bug in this program. */
export function failureOf(error: unknown): Failure | undefined {
  if (error instanceof CliError) {
    const { code, detail, errors, exitCode } = error
    return { code, detail, status: undefined, errors, exitCode }
  }
  if (!isClientError(error)) return undefined
  const { code, status, errors } = error
  return { code, detail: error.detail + adviceFor(code), status, errors, exitCode: exitCodeOf(code) }
}

/** A failure as text. */
export function failureText({ code, detail, errors }: Failure): string {
  return [`sluice: ${code}: ${detail}`, ...errors.map((error) => `  ${problemText(error)}`)].join('\n')
}

/** One problem of a request or a file, as text. */
export function problemText({ path, received, expected, line }: FieldProblem): string {
  const place = line === undefined ? path || 'the whole body' : `${path || 'the whole file'} (line ${line})`
  return `${place}: received ${received}; expected ${expected}`
}

/** A failure as JSON. */
export function failureJson({ exitCode, ...error }: Failure): string {
  return JSON.stringify({ error, exitCode })
}

const EXIT_CODES_OF: Readonly<Record<string, ExitCode>> = {
  SLUICE_CLIENT_INVALID_OPTION: EXIT_CODES.usage,
  SLUICE_CLIENT_UNREACHABLE: EXIT_CODES.unreachable,
  SLUICE_CLIENT_TIMEOUT: EXIT_CODES.unreachable,
  SLUICE_CLIENT_UNEXPECTED_ANSWER: EXIT_CODES.unreachable,
  SLUICE_HTTP_UNAUTHORIZED: EXIT_CODES.unauthorized,
  SLUICE_HTTP_FORBIDDEN: EXIT_CODES.unauthorized,
  SLUICE_HTTP_TOO_MANY_FAILURES: EXIT_CODES.unauthorized,
}

function exitCodeOf(code: string): ExitCode {
  return EXIT_CODES_OF[code] ?? EXIT_CODES.failed
}

/** Advice that only the command line can give. */
function adviceFor(code: string): string {
  if (code === 'SLUICE_CLIENT_UNREACHABLE') return ' Start it with "sluice serve", or set --url or SLUICE_URL.'
  if (code === 'SLUICE_HTTP_UNAUTHORIZED') return ' Set the key in SLUICE_API_KEY or --key.'
  return ''
}
