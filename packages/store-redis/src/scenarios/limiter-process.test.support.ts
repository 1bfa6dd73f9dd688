import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { ChildAnswer, ChildAnswers, ChildOrders, Opening } from './limiter-orders.test.support.ts'

const CHILD = fileURLToPath(new URL('./limiter-child.test.support.ts', import.meta.url))

/** Loaded before anything else: the wall clock of the process is off by `globalThis.skewMs`. */
const SKEWED = 'const real = Date.now; Date.now = () => real() + (globalThis.skewMs ?? 0)'

/** A real process with a limiter on Redis. */
export class LimiterProcess {
  readonly #child: ChildProcess
  readonly #exited: Promise<unknown>
  readonly #waiting = new Map<number, { resolve: (answer: never) => void; reject: (error: Error) => void }>()
  #orders = 0

  private constructor(child: ChildProcess) {
    this.#child = child
    this.#exited = once(child, 'exit')
    child.on('message', ({ id, answer, error }: ChildAnswer) => {
      const waiting = this.#waiting.get(id)
      this.#waiting.delete(id)
      if (error === undefined) waiting?.resolve(answer as never)
      else waiting?.reject(new Error(error))
    })
    child.on('exit', () => {
      for (const { reject } of this.#waiting.values()) reject(new Error('the process has ended'))
    })
  }

  /** Starts one; resolves when it is connected. With `skewMs` its wall clock is off from the start. */
  static async start(opening: Opening, { skewMs = 0 }: { readonly skewMs?: number } = {}): Promise<LimiterProcess> {
    const preload = `--import=data:text/javascript,${encodeURIComponent(`globalThis.skewMs = ${skewMs}; ${SKEWED}`)}`
    const child = fork(CHILD, { execArgv: ['--conditions=source', '--no-warnings', preload] })
    const started = new LimiterProcess(child)
    try {
      await once(child, 'message')
      await started.order('open', opening)
      return started
    } catch (error) {
      await started.kill()
      throw error
    }
  }

  /** Starts several at once. */
  static startAll(times: number, openingOf: (index: number) => Opening): Promise<LimiterProcess[]> {
    return Promise.all(Array.from({ length: times }, (_, index) => LimiterProcess.start(openingOf(index))))
  }

  get pid(): number {
    return this.#child.pid!
  }

  order<Name extends keyof ChildOrders>(name: Name, order: ChildOrders[Name]): Promise<ChildAnswers[Name]> {
    const id = ++this.#orders
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.#child.send({ id, name, order })
    })
  }

  /** Ends it at once. Resolves when it is gone. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#exited
  }

  /** Stops all of it; only its clocks go on. */
  freeze(): void {
    this.#child.kill('SIGSTOP')
  }

  thaw(): void {
    this.#child.kill('SIGCONT')
  }

  /** Ends it in good order: what it holds is given back. */
  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    await this.order('close', {})
    this.#child.disconnect()
    await this.#exited
  }
}
