import { jsonAnswer } from './answer.ts'
import type { OperationHandlers } from './handler.ts'
import type { Readiness } from './readiness.ts'

const ALIVE = jsonAnswer(200, '{"status":"ok"}', { headers: { 'Cache-Control': 'no-store' } })

/**
 * `GET /livez`: 200 while the process answers at all. It depends on nothing else, because a restart would not bring back
 * anything else. `GET /readyz`: whether requests should be sent here.
 */
export function healthHandlers(readiness: Readiness): OperationHandlers {
  return {
    'GET /livez': () => ALIVE,
    'GET /readyz': () => readiness.answer(),
  }
}
