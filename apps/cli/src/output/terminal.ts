/** Where a command writes to. */
export interface Terminal {
  /** Prints a text and a line end: the result. */
  print(text: string): void
  /** The same for what is not part of the result. */
  printError(text: string): void
  /** Writes to the place of the result as it is, with control characters. */
  draw(text: string): void
  /** The same for what is not part of the result. */
  drawError(text: string): void
  /** Whether a person reads the result. */
  readonly isTty: boolean
  /** Whether a person reads what is not part of it. */
  readonly isErrorTty: boolean
  readonly columns: number
  readonly rows: number
}

/** The part of a stream that is written to. */
export interface TerminalStream {
  write(text: string): unknown
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  readonly rows?: number | undefined
}

const USUAL_COLUMNS = 100
const USUAL_ROWS = 30

/** A terminal on the standard streams of a process. */
export function streamTerminal(output: TerminalStream, errors: TerminalStream): Terminal {
  return {
    print: (text) => void output.write(`${plain(text)}\n`),
    printError: (text) => void errors.write(`${plain(text)}\n`),
    draw: (text) => void output.write(text),
    drawError: (text) => void errors.write(text),
    isTty: output.isTTY === true,
    isErrorTty: errors.isTTY === true,
    get columns() {
      // Some terminals do not know how large they are, and say 0.
      return output.columns || USUAL_COLUMNS
    },
    get rows() {
      return output.rows || USUAL_ROWS
    },
  }
}

/**
 * A text without what a terminal would take for commands: names, notes and reasons are the choice of others, and could otherwise
 * rewrite what is on the screen.
 */
export function plain(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n]/gu, '\ufffd')
}
