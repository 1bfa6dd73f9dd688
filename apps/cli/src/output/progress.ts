import type { Terminal } from './terminal.ts'
import { plain } from './terminal.ts'

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
