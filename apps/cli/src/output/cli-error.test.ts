import { describe, expect, it } from 'vitest'
import type { CliErrorCode } from './cli-error.ts'
import { CLI_ERRORS, CliError, EXIT_CODE_MEANINGS } from './cli-error.ts'

describe('CliError', () => {
  it.each(Object.entries(CLI_ERRORS))(
    '%s says what it is, and ends the process with a code that is explained',
    (code, kind) => {
      const cause = new Error('underneath')
      const error = new CliError(code as CliErrorCode, { detail: 'This and that.', cause })
      expect(code).toMatch(/^SLUICE_CLI_[A-Z_]+$/)
      expect(error.message).toBe(`${code}: ${kind.title}. This and that.`)
      expect(error).toMatchObject({ code, detail: 'This and that.', cause, exitCode: kind.exitCode })
      expect(Object.keys(EXIT_CODE_MEANINGS)).toContain(String(error.exitCode))
    },
  )
})
