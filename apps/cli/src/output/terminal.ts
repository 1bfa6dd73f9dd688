/** Adds colour to a string. Without colour, each function returns its argument. */
export interface Paint {
  readonly green: (text: string) => string
  readonly yellow: (text: string) => string
  readonly red: (text: string) => string
  readonly dim: (text: string) => string
  readonly bold: (text: string) => string
}

/** Where a command writes to. */
export interface Terminal {
  /** Prints a line of the result. `decorate` adds colour after control characters are removed. */
  print(text: string, decorate?: (text: string, paint: Paint) => string): void
  /** Prints a line to standard error. */
  printError(text: string): void
  /** Writes to standard output unchanged, with control characters. */
  draw(text: string): void
  /** Writes to standard error unchanged. */
  drawError(text: string): void
  /** Whether standard output is a terminal. */
  readonly isTty: boolean
  /** Whether standard error is a terminal. */
  readonly isErrorTty: boolean
  readonly columns: number
  readonly rows: number
  /** Colours for `draw`. */
  readonly paint: Paint
}

/** The part of a stream that a terminal uses. */
export interface TerminalStream {
  write(text: string): unknown
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  readonly rows?: number | undefined
}

const DEFAULT_COLUMNS = 100
const DEFAULT_ROWS = 30

type Environment = Readonly<Record<string, string | undefined>>

/** A terminal on the standard streams of a process. The environment enables or disables colour. */
export function streamTerminal(
  output: TerminalStream,
  errors: TerminalStream,
  environment: Environment = {},
): Terminal {
  const paint = hasColour(output, environment) ? ANSI : PLAIN
  return {
    paint,
    print: (text, decorate = (shown) => shown) => void output.write(`${decorate(plain(text), paint)}\n`),
    printError: (text) => void errors.write(`${plain(text)}\n`),
    draw: (text) => void output.write(text),
    drawError: (text) => void errors.write(text),
    isTty: output.isTTY === true,
    isErrorTty: errors.isTTY === true,
    get columns() {
      // Some terminals report 0.
      return output.columns || DEFAULT_COLUMNS
    },
    get rows() {
      return output.rows || DEFAULT_ROWS
    },
  }
}

/**
 * Whether a stream shows colour: `FORCE_COLOR` (0 and false disable it), then `NO_COLOR` (non-empty disables it), then
 * whether it is a terminal with colour support.
 */
function hasColour({ isTTY }: TerminalStream, environment: Environment): boolean {
  const { FORCE_COLOR: forced, NO_COLOR: unwanted, TERM: kind } = environment
  if (forced !== undefined) return forced !== '0' && forced !== 'false'
  if (unwanted !== undefined && unwanted !== '') return false
  return isTTY === true && kind !== 'dumb'
}

const PLAIN: Paint = { green: same, yellow: same, red: same, dim: same, bold: same }
const ANSI: Paint = {
  green: ansi(32, 39),
  yellow: ansi(33, 39),
  red: ansi(31, 39),
  dim: ansi(2, 22),
  bold: ansi(1, 22),
}

function same(text: string): string {
  return text
}

function ansi(on: number, off: number): (text: string) => string {
  return (text) => `\u001B[${on}m${text}\u001B[${off}m`
}

/**
 * Replaces control characters. Names, notes and reasons come from other users, who could otherwise send commands to
 * this terminal.
 */
export function plain(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n]/gu, '\ufffd')
}
