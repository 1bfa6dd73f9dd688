import type { ReadinessCheck, ReadinessReason } from '@sluice/contract'
import type { Answer, OperationHandlers } from './handler.ts'
import { jsonAnswer } from './handler.ts'
import { problemAnswer } from './problems.ts'

/** State of one dependency of the service. */
export interface HealthCheck extends ReadinessCheck {
  /** Problems. If `ready` is true, a reason makes the service degraded. Default: none. */
  readonly reasons?: readonly ReadinessReason[]
}

/** Checks a dependency. Never fails. */
export type CheckHealth = () => HealthCheck | Promise<HealthCheck>

const NO_STORE = { 'Cache-Control': 'no-store' }

/** Whether requests should be sent here: not before startup is complete, and not after shutdown has begun. */
export class Readiness {
  #checks: readonly CheckHealth[]
  #isStopping = false

  constructor(checks: readonly CheckHealth[]) {
    this.#checks = checks
  }

  /** Adds checks of parts that were created later. */
  add(checks: readonly CheckHealth[]): void {
    this.#checks = [...this.#checks, ...checks]
  }

  /** Not ready from now on. */
  beginStop(): void {
    this.#isStopping = true
  }

  /** All current problems. */
  async reasons(): Promise<readonly ReadinessReason[]> {
    return reasonsOf(await this.#look())
  }

  /** 200 or 503 with the state of all dependencies. A service that decides despite a problem is degraded: 200. */
  async answer(): Promise<Answer> {
    const looked = await this.#look()
    const checks = looked.map(({ name, ready, detail }): ReadinessCheck => ({ name, ready, detail }))
    const reasons = reasonsOf(looked)
    if (looked.every(({ ready }) => ready)) {
      const status = reasons.length === 0 ? 'ready' : 'degraded'
      return jsonAnswer(200, JSON.stringify({ status, reasons, checks }), { headers: NO_STORE })
    }
    const missing = checks.filter(({ ready }) => !ready).map(({ name, detail }) => `${name}: ${detail}`)
    return problemAnswer('SLUICE_HTTP_NOT_READY', {
      detail: `Send requests elsewhere (${missing.join('; ')}).`,
      checks,
      reasons,
      headers: { ...NO_STORE, 'Retry-After': '1' },
    })
  }

  async #look(): Promise<readonly HealthCheck[]> {
    const looked = await Promise.all(this.#checks.map((check) => check()))
    return this.#isStopping ? [STOPPING, ...looked] : looked
  }
}

function reasonsOf(looked: readonly HealthCheck[]): readonly ReadinessReason[] {
  return looked.flatMap(({ reasons = [] }) => reasons)
}

const STOPPING: HealthCheck = {
  name: 'service',
  ready: false,
  detail: 'it is stopping',
  reasons: [{ code: 'stopping', message: 'The service is about to stop. Send requests to another node.' }],
}

const ALIVE = jsonAnswer(200, '{"status":"ok"}', { headers: { 'Cache-Control': 'no-store' } })

/**
 * `livez`: 200 while the process answers at all. Depends on nothing else, because a restart would not fix anything
 * else. `readyz`: whether requests should be sent here.
 */
export function healthHandlers(readiness: Readiness): OperationHandlers<'livez' | 'readyz'> {
  return {
    livez: () => ALIVE,
    readyz: () => readiness.answer(),
  }
}
