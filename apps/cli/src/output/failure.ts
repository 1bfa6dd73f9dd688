import { isClientError } from '@sluice/client'
import type { FieldProblem } from '@sluice/contract'
import { CliError } from '../cli-error.ts'
import type { ExitCode } from '../exit-code.ts'
import { EXIT_CODES } from '../exit-code.ts'

/** What went wrong, as it is told. */
export interface Failure {
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
