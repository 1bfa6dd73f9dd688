import type { ReadinessCheck } from '@sluice/contract'
import type { Answer } from '../http/answer.ts'
import { jsonAnswer } from '../http/answer.ts'
import { problemAnswer } from '../http/problem-answer.ts'

const NO_STORE = { 'Cache-Control': 'no-store' }

/** Whether requests should be sent here: not before everything is there, and not once the service is told to stop. */
export class Readiness {
  readonly #checks: readonly (() => ReadinessCheck | Promise<ReadinessCheck>)[]
  #isStopping = false

  /** `checks`: each says how one thing stands. They do not fail. */
  constructor(checks: readonly (() => ReadinessCheck | Promise<ReadinessCheck>)[]) {
    this.#checks = checks
  }

  /** From now on it is not ready. */
  beginStop(): void {
    this.#isStopping = true
  }

  /** 200 with how everything stands, or 503 with the same and the reasons in words. */
  async answer(): Promise<Answer> {
    const looked = await Promise.all(this.#checks.map((check) => check()))
    const checks = this.#isStopping ? [STOPPING, ...looked] : looked
    const missing = checks.filter(({ ready }) => !ready)
    if (missing.length === 0) {
      return jsonAnswer(200, JSON.stringify({ status: 'ready', checks }), { headers: NO_STORE })
    }
    const reasons = missing.map(({ name, detail }) => `${name}: ${detail}`).join('; ')
    return problemAnswer('SLUICE_HTTP_NOT_READY', {
      detail: `Send requests elsewhere (${reasons}).`,
      checks,
      headers: { ...NO_STORE, 'Retry-After': '1' },
    })
  }
}

const STOPPING: ReadinessCheck = { name: 'service', ready: false, detail: 'it is stopping' }
