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

/** Calls `run` every `ms` milliseconds until the returned function is called. */
export type Every = (ms: number, run: () => void) => () => void

const STEP_MS = 250
const QUIET_STEPS = 4
const CLEAR_LINE = '\r\u001B[2K'

/**
 * Shows on standard error what the command does, if that takes longer than a second and standard error is a terminal.
 * `stop` erases the line before anything else is written.
 */
export class Progress {
  readonly #terminal: Terminal
  readonly #every: Every
  #label = ''
  #steps = 0
  #isShown = false
  #stop: (() => void) | undefined

  constructor(terminal: Terminal, every: Every) {
    this.#terminal = terminal
    this.#every = every
  }

  /** Starts to show progress. */
  start(label: string): void {
    this.#label = label
    if (this.#stop !== undefined || !this.#terminal.isErrorTty) return
    this.#steps = 0
    this.#stop = this.#every(STEP_MS, () => this.#step())
  }

  /** Changes the label. */
  say(label: string): void {
    this.#label = label
    if (this.#isShown) this.#draw()
  }

  /** Erases the line and stops the timer. */
  stop(): void {
    this.#stop?.()
    this.#stop = undefined
    if (this.#isShown) this.#terminal.drawError(CLEAR_LINE)
    this.#isShown = false
  }

  #step(): void {
    this.#steps++
    if (this.#steps < QUIET_STEPS) return
    this.#isShown = true
    this.#draw()
  }

  #draw(): void {
    const seconds = Math.floor((this.#steps * STEP_MS) / 1000)
    const line = `${plain(this.#label).replaceAll('\n', ' ')} ... ${seconds} s`
    this.#terminal.drawError(`${CLEAR_LINE}${line.slice(0, this.#terminal.columns - 1)}`)
  }
}
