import type { FieldProblem } from '@sluice/contract'
import type { ExitCode } from './exit-code.ts'
import { EXIT_CODES } from './exit-code.ts'

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
