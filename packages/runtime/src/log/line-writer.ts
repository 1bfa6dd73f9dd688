/** The used part of a Node stream; `process.stdout`, sockets and file streams have it. */
export interface LineStream {
  /** Always accepts the text; false asks to wait for `drain`. */
  write(text: string, written: (error?: Error | null) => void): boolean
  /** `close` means that the stream will not write any more, for any reason. */
  on(event: 'drain' | 'error' | 'close', listener: () => void): unknown
  off(event: 'drain' | 'error' | 'close', listener: () => void): unknown
}

/** Options of {@link LineWriter}. */
export interface LineWriterOptions {
  readonly stream: LineStream
  /** Maximum number of characters buffered while the stream is blocked. */
  readonly mostWaiting: number
  /** Formats the line that reports lost lines, once there is room again. */
  readonly lostLine: (count: number) => string
}

/**
 * Writes lines to a stream and never waits for it: while the stream is blocked, lines are buffered up to a limit, and
 * further ones are dropped and counted. When the stream flows again, a line reports how many are missing. After the
 * stream has failed or closed, lines are dropped and counted too.
 */
export class LineWriter {
  readonly #options: LineWriterOptions
  readonly #waiting: string[] = []
  #waitingLength = 0
  #isBlocked = false
  #isClosed = false
  #hasFailed = false
  #unwritten = 0
  #written = 0
  #dropped = 0
  /** Dropped lines not yet reported. */
  #untold = 0
  #whenSettled: (() => void)[] = []

  constructor(options: LineWriterOptions) {
    this.#options = options
    options.stream.on('drain', this.#onDrain)
    options.stream.on('error', this.#onFailure)
    options.stream.on('close', this.#onFailure)
  }

  /** Written and dropped lines. */
  get counts(): { readonly written: number; readonly dropped: number } {
    return { written: this.#written, dropped: this.#dropped }
  }

  /** Writes, buffers or drops `line`, which has no line feed. Never waits. */
  write(line: string): void {
    if (this.#isClosed || this.#hasFailed) this.#drop(1)
    else if (!this.#isBlocked) this.#send(`${line}\n`, 1)
    else if (this.#waitingLength + line.length > this.#options.mostWaiting) this.#drop(1)
    else {
      this.#waiting.push(line)
      this.#waitingLength += line.length
    }
  }

  /**
   * Accepts no further line and waits until the stream has written everything, or has failed; or until `signal` aborts,
   * and then drops the rest. The stream stays open. Idempotent.
   */
  async close(signal?: AbortSignal): Promise<void> {
    this.#isClosed = true
    if (!this.#isSettled() && signal?.aborted !== true) {
      await new Promise<void>((resolve) => {
        const settled = (): void => {
          signal?.removeEventListener('abort', settled)
          resolve()
        }
        signal?.addEventListener('abort', settled, { once: true })
        this.#whenSettled.push(settled)
      })
    }
    this.#dropWaiting()
    this.#options.stream.off('drain', this.#onDrain)
    this.#options.stream.off('close', this.#onFailure)
    // While a write is in progress, the stream may still fail, and emits `error` after the callback: an unhandled
    // `error` event ends the process.
    if (this.#unwritten === 0 && !this.#hasFailed) this.#options.stream.off('error', this.#onFailure)
  }

  #send(text: string, lines: number): void {
    this.#unwritten++
    this.#written += lines
    this.#isBlocked = !this.#options.stream.write(text, this.#onWritten)
  }

  #drop(lines: number): void {
    this.#dropped += lines
    this.#untold += lines
  }

  #dropWaiting(): void {
    this.#drop(this.#waiting.length)
    this.#waiting.length = 0
    this.#waitingLength = 0
  }

  #isSettled(): boolean {
    return this.#hasFailed || (this.#unwritten === 0 && this.#waiting.length === 0)
  }

  #fail(): void {
    this.#hasFailed = true
    this.#dropWaiting()
    this.#settle()
  }

  #settle(): void {
    if (!this.#isSettled()) return
    const settled = this.#whenSettled
    this.#whenSettled = []
    for (const resolve of settled) resolve()
  }

  readonly #onWritten = (error?: Error | null): void => {
    this.#unwritten--
    if (error) this.#fail()
    else this.#settle()
  }

  readonly #onDrain = (): void => {
    this.#isBlocked = false
    const lines = this.#waiting.splice(0)
    this.#waitingLength = 0
    if (this.#untold > 0) lines.push(this.#options.lostLine(this.#untold))
    this.#untold = 0
    if (lines.length > 0) this.#send(`${lines.join('\n')}\n`, lines.length)
  }

  readonly #onFailure = (): void => this.#fail()
}
