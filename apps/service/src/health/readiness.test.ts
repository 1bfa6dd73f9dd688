import { expect, it } from 'vitest'
import { Readiness } from './readiness.ts'

const STORE = { name: 'store', ready: true, detail: 'Redis answers' }
const CONFIG = { name: 'config', ready: false, detail: 'no rules were loaded yet' }

it('is 200 with how everything stands when everything is ready', async () => {
  const readiness = new Readiness([() => STORE, () => Promise.resolve({ ...CONFIG, ready: true })])
  const { status, headers, body } = await readiness.answer()
  expect(status).toBe(200)
  expect(headers['Cache-Control']).toBe('no-store')
  expect(JSON.parse(body)).toEqual({ status: 'ready', checks: [STORE, { ...CONFIG, ready: true }] })
})

it('is 503 with the reasons when something is not', async () => {
  const { status, headers, body } = await new Readiness([() => STORE, () => CONFIG]).answer()
  expect(status).toBe(503)
  expect(headers).toMatchObject({ 'Cache-Control': 'no-store', 'Retry-After': '1' })
  const problem = JSON.parse(body)
  expect(problem).toMatchObject({ code: 'SLUICE_HTTP_NOT_READY', checks: [STORE, CONFIG] })
  expect(problem.detail).toContain('config: no rules were loaded yet')
  expect(problem.detail).not.toContain('Redis')
})

it('is 503 from the moment the service is told to stop', async () => {
  const readiness = new Readiness([() => STORE])
  readiness.beginStop()
  const { status, body } = await readiness.answer()
  expect(status).toBe(503)
  expect(JSON.parse(body).checks).toEqual([{ name: 'service', ready: false, detail: 'it is stopping' }, STORE])
})

it('looks anew each time', async () => {
  let check = CONFIG
  const readiness = new Readiness([() => check])
  expect((await readiness.answer()).status).toBe(503)
  check = { ...CONFIG, ready: true }
  expect((await readiness.answer()).status).toBe(200)
})
