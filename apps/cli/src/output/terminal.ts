/** Adds colour to a text. Without colour, each returns the text as it is. */
export interface Paint {
  readonly green: (text: string) => string
  readonly yellow: (text: string) => string
  readonly red: (text: string) => string
  readonly dim: (text: string) => string
  readonly bold: (text: string) => string
}

/** Where a command writes to. */
export interface Terminal {
  /** Prints a text and a line end: the result. `decorate` adds colour, after control characters were removed from the text. */
  print(text: string, decorate?: (text: string, paint: Paint) => string): void
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
  /** For what is drawn. */
  readonly paint: Paint
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

type Environment = Readonly<Record<string, string | undefined>>

/** A terminal on the standard streams of a process. The environment says whether there is colour. */
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
      // Some terminals do not know how large they are, and say 0.
      return output.columns || USUAL_COLUMNS
    },
    get rows() {
      return output.rows || USUAL_ROWS
    },
  }
}

/**
 * Whether a stream shows colour: `FORCE_COLOR` (0 and false: none), else `NO_COLOR` (anything but empty: none), else whether it
 * is a terminal that can.
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
 * A text without what a terminal would take for commands: names, notes and reasons are the choice of others, and could otherwise
 * rewrite what is on the screen.
 */
export function plain(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n]/gu, '\ufffd')
}
