import { LOOPBACK } from './free-port.ts'
import type { ProcessGuard } from './process-guard.ts'
import { ServerError } from './server-error.ts'
import type { ServerProcess } from './server-process.ts'

/** `running`, `paused` (it keeps its connections and answers nothing), or `ended` (nothing listens on its port). */
export type ServerStatus = 'running' | 'paused' | 'ended'

/** Parts of a {@link TestServer}. */
export interface TestServerParts {
  /** For messages, such as `Redis server`. */
  readonly name: string
  readonly port: number
  readonly guard: ProcessGuard
  readonly process: ServerProcess
  /** Starts the program again, with the same port, folder and configuration. */
  readonly relaunch: () => Promise<ServerProcess>
}

/**
 * A real server on 127.0.0.1 for tests. It ends with the process that started it, even if that is killed, and leaves no
 * file behind.
 */
export abstract class TestServer {
  readonly host: string = LOOPBACK
  /** Stays the same through every restart. */
  readonly port: number
  readonly #parts: TestServerParts
  #process: ServerProcess
  #isPaused = false
  /** A restart in progress. close() waits for it: a process that starts later would have no owner. */
  #settled: Promise<void> = Promise.resolve()
  #closing: Promise<void> | undefined

  constructor(parts: TestServerParts) {
    this.port = parts.port
    this.#parts = parts
    this.#process = parts.process
  }

  /** Of the current or last process. */
  get pid(): number {
    return this.#process.pid
  }

  get status(): ServerStatus {
    if (!this.#process.isRunning) return 'ended'
    return this.#isPaused ? 'paused' : 'running'
  }

  /** The last lines of its log, at most 40, since its last start. */
  get log(): string {
    return this.#process.log
  }

  /** Kills it at once, like a crash (SIGKILL). Resolves when it has ended; no effect if it already has. */
  kill(): Promise<void> {
    return this.end('SIGKILL')
  }

  /** Stops it cleanly. Resolves when it has ended. */
  abstract stop(): Promise<void>

  /** Makes it hang (SIGSTOP): connections stay, new ones are accepted, nothing is answered. Resolves when it hangs. */
  async pause(): Promise<void> {
    this.#requireProcess('pause')
    this.#isPaused = true
    await this.#process.freeze()
  }

  /** Resumes it (SIGCONT): it answers everything it was sent meanwhile. No effect if it is not paused. */
  resume(): void {
    this.#requireProcess('resume')
    this.#isPaused = false
    this.signalAll('SIGCONT')
  }

  /**
   * Restarts it on the same port with the same configuration and folder, after {@link stop} if it runs. Resolves when
   * it answers.
   */
  restart(): Promise<void> {
    if (this.#closing !== undefined) return Promise.reject(this.#notRunning('restart', 'closed'))
    const restarted = this.#relaunch()
    this.#settled = restarted.catch(() => undefined)
    return restarted
  }

  /** Kills it and removes its files, in any state. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#finish()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Kills the process. A paused one receives the signal when it is resumed. */
  protected async end(signal: NodeJS.Signals): Promise<void> {
    this.signal(signal)
    if (this.#isPaused) this.signalAll('SIGCONT')
    this.#isPaused = false
    await this.#process.ended
  }

  /** Sends a signal to the process; no effect if it has ended. */
  protected signal(signal: NodeJS.Signals): void {
    this.#process.signal(signal)
  }

  /** Sends a signal to the process and its children, if it has any. */
  protected signalAll(signal: NodeJS.Signals): void {
    this.signal(signal)
  }

  /** Kills the process for good; its files are removed afterwards. */
  protected endForGood(): Promise<void> {
    return this.kill()
  }

  async #relaunch(): Promise<void> {
    await this.stop()
    this.#process = await this.#parts.relaunch()
  }

  async #finish(): Promise<void> {
    await this.#settled
    await this.endForGood()
    await this.#parts.guard.dismiss()
  }

  #requireProcess(action: string): void {
    if (!this.#process.isRunning) throw this.#notRunning(action, 'ended')
  }

  #notRunning(action: string, state: string): ServerError {
    return new ServerError(
      'SLUICE_TESTING_NOT_RUNNING',
      `cannot ${action} the ${this.#parts.name} on port ${this.port}: it is ${state}. ` +
        'Start a new one, or restart one that was not closed.',
    )
  }
}
