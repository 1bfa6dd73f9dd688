import { expect, it } from 'vitest'
import type { HealthCheck } from './health.ts'
import { Readiness } from './health.ts'

const STORE: HealthCheck = { name: 'store', ready: true, detail: 'Redis answers' }
const CONFIG: HealthCheck = { name: 'config', ready: false, detail: 'no rules were loaded yet' }
const NO_RULES = { code: 'no-rules', message: 'No rules are known. The database is unreachable.' } as const
const REDIS = { code: 'redis-unreachable', message: 'Redis is unreachable. Check REDIS_URL.' } as const

it('is 200 and ready with how everything stands when nothing is wrong', async () => {
  const readiness = new Readiness([() => STORE, () => Promise.resolve({ ...CONFIG, ready: true })])
  const { status, headers, body } = await readiness.answer()
  expect(status).toBe(200)
  expect(headers['Cache-Control']).toBe('no-store')
  expect(JSON.parse(body)).toEqual({ status: 'ready', reasons: [], checks: [STORE, { ...CONFIG, ready: true }] })
})

it('is 200 and degraded with the reasons when it decides and something is wrong', async () => {
  const readiness = new Readiness([() => ({ ...STORE, reasons: [REDIS] }), () => ({ ...CONFIG, ready: true })])
  const { status, body } = await readiness.answer()
  expect([status, JSON.parse(body)]).toEqual([
    200,
    { status: 'degraded', reasons: [REDIS], checks: [STORE, { ...CONFIG, ready: true }] },
  ])
  expect(await readiness.reasons()).toEqual([REDIS])
})

it('is 503 with the reasons when it cannot decide', async () => {
  const checks = [() => ({ ...STORE, reasons: [REDIS] }), () => ({ ...CONFIG, reasons: [NO_RULES] })]
  const { status, headers, body } = await new Readiness(checks).answer()
  expect(status).toBe(503)
  expect(headers).toMatchObject({ 'Cache-Control': 'no-store', 'Retry-After': '1' })
  const problem = JSON.parse(body)
  expect(problem).toMatchObject({ code: 'SLUICE_HTTP_NOT_READY', checks: [STORE, CONFIG], reasons: [REDIS, NO_RULES] })
  expect(problem.detail).toContain('config: no rules were loaded yet')
  expect(problem.detail).not.toContain('Redis')
})

it('is 503 from the moment shutdown begins', async () => {
  const readiness = new Readiness([() => STORE])
  readiness.beginStop()
  const { status, body } = await readiness.answer()
  expect(status).toBe(503)
  const { checks, reasons } = JSON.parse(body)
  expect(checks).toEqual([{ name: 'service', ready: false, detail: 'it is stopping' }, STORE])
  expect(reasons).toEqual([{ code: 'stopping', message: expect.stringContaining('another node') }])
})

it('checks again at each call', async () => {
  let check = CONFIG
  const readiness = new Readiness([() => check])
  expect((await readiness.answer()).status).toBe(503)
  check = { ...CONFIG, ready: true }
  expect((await readiness.answer()).status).toBe(200)
})
