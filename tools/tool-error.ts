/** A failure of a tool that the person at the keyboard can act on; it is printed without a stack. */
export class ToolError extends Error {
  /** Stable, for scripts to recognise. */
  readonly code: string

  /** @param message - what was found, what was expected, what to do */
  constructor(code: string, message: string) {
    super(message)
    this.name = 'ToolError'
    this.code = code
  }
}

/**
 * Runs a tool to its end and turns a {@link ToolError} into a message and exit code 1; other errors are bugs and
 * escape.
 */
export async function runTool(main: () => Promise<void> | void): Promise<void> {
  try {
    await main()
  } catch (error) {
    if (!(error instanceof ToolError)) throw error
    console.error(`\nsluice: ${error.code}: ${error.message}`)
    process.exitCode = 1
  }
}
