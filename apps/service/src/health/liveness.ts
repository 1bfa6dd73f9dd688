import { jsonAnswer } from '../http/answer.ts'
import type { Route } from '../http/router.ts'

const ALIVE = jsonAnswer(200, '{"status":"ok"}', { headers: { 'Cache-Control': 'no-store' } })

/**
 * `GET /livez`: 200 while the process answers at all. It depends on nothing else, because a restart would not bring back
 * anything else.
 */
export const livenessRoute: Route = { path: '/livez', methods: { GET: { body: 'none', handle: () => ALIVE } } }
