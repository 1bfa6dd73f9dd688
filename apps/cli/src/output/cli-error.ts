import { isClientError } from '@sluice/client'
import type { FieldProblem } from '@sluice/contract'

/** What the exit code of the command says. Codes are part of the public interface: they are never changed. */
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

/** What each exit code means, in the words of the help. */
export const EXIT_CODE_MEANINGS: Readonly<Record<ExitCode, string>> = {
  0: 'success',
  1: 'failure',
  2: 'invalid command line or file',
  3: 'check: the call is denied',
  4: 'the service is unreachable',
  5: 'API key missing, invalid, or lacking permission',
  130: 'interrupted',
}

/** What an error of the command line is called. */
export type CliErrorCode =
  | 'SLUICE_CLI_USAGE'
  | 'SLUICE_CLI_INVALID_FILE'
  | 'SLUICE_CLI_NOT_FOUND'
  | 'SLUICE_CLI_NOT_STAGED'
  | 'SLUICE_CLI_WOULD_REPLACE'
  | 'SLUICE_CLI_PART_DONE'
  | 'SLUICE_CLI_PROGRAM_MISSING'
  | 'SLUICE_CLI_PROGRAM_FAILED'

/**
 * Every error code of the command line, what it means, and how the process ends with it. A code is never reused for another
 * meaning; messages may change.
 */
export const CLI_ERRORS: Readonly<Record<CliErrorCode, { readonly title: string; readonly exitCode: ExitCode }>> = {
  SLUICE_CLI_USAGE: { title: 'the command line cannot be used', exitCode: EXIT_CODES.usage },
  SLUICE_CLI_INVALID_FILE: { title: 'a file cannot be used', exitCode: EXIT_CODES.usage },
  SLUICE_CLI_NOT_FOUND: { title: 'there is nothing of the kind', exitCode: EXIT_CODES.failed },
  SLUICE_CLI_NOT_STAGED: {
    title: 'a new version could not be moved to its stage',
    exitCode: EXIT_CODES.failed,
  },
  SLUICE_CLI_WOULD_REPLACE: {
    title: 'rules that are enforced would be replaced unseen',
    exitCode: EXIT_CODES.failed,
  },
  SLUICE_CLI_PART_DONE: { title: 'a part of it was done', exitCode: EXIT_CODES.failed },
  SLUICE_CLI_PROGRAM_MISSING: { title: 'a program is not installed', exitCode: EXIT_CODES.failed },
  SLUICE_CLI_PROGRAM_FAILED: { title: 'a program failed, and gave no code', exitCode: EXIT_CODES.failed },
}

/** Something that the person at the keyboard can act on. */
export class CliError extends Error {
  override readonly name = 'CliError'
  readonly code: CliErrorCode
  /** What was received, what was expected, what to do. Without secrets. */
  readonly detail: string
  /** Each thing that is wrong with a file. */
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

/** A command line that cannot be used. */
export function usageError(detail: string): CliError {
  return new CliError('SLUICE_CLI_USAGE', { detail })
}

/** What went wrong, as it is told. */
interface Failure {
  readonly code: string
  /** What happened, and what to do. */
  readonly detail: string
  /** The HTTP status; undefined when the service did not answer, or was not asked. */
  readonly status: number | undefined
  /** Each thing that is wrong with what was sent. */
  readonly errors: readonly FieldProblem[]
  readonly exitCode: ExitCode
}

/** What `error` means to the user of a command; undefined for a mistake in this program. */
export function failureOf(error: unknown): Failure | undefined {
  if (error instanceof CliError) {
    const { code, detail, errors, exitCode } = error
    return { code, detail, status: undefined, errors, exitCode }
  }
  if (!isClientError(error)) return undefined
  const { code, status, errors } = error
  return { code, detail: error.detail + adviceFor(code), status, errors, exitCode: exitCodeOf(code) }
}

/** The failure for people. */
export function failureText({ code, detail, errors }: Failure): string {
  return [`sluice: ${code}: ${detail}`, ...errors.map((error) => `  ${problemText(error)}`)].join('\n')
}

/** One thing that is wrong with what was sent or read. */
export function problemText({ path, received, expected, line }: FieldProblem): string {
  const place = line === undefined ? '' : ` (line ${line})`
  return `${path || 'all of it'}${place}: received ${received}; expected ${expected}`
}

/** The failure as JSON. */
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

/** What helps at the command line, where the service cannot know that it is asked from one. */
function adviceFor(code: string): string {
  if (code === 'SLUICE_CLIENT_UNREACHABLE') return ' "sluice serve" starts one here; --url or SLUICE_URL names another.'
  if (code === 'SLUICE_HTTP_UNAUTHORIZED') return ' Give the key in SLUICE_API_KEY or by --key.'
  return ''
}
