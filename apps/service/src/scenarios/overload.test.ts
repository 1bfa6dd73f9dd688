import { expect, it, onTestFinished } from 'vitest'
import { answerOf, startService } from '../service.fixture.ts'

const CHECK = { userId: 'u1', resource: '/x' }

it('under too much load checks are turned away at once, health is not, and all is well when it is over', async () => {
  const { check, origin, admin, advance, setLoopDelay, stop } = await startService()
  onTestFinished(stop)
  expect((await check(CHECK)).status).toBe(200)
  setLoopDelay(1500)
  // It is looked at four times a second.
  advance(250_000)
  const refused = await check(CHECK)
  expect(refused.status).toBe(503)
  expect(refused.headers.get('retry-after')).toBe('1')
  expect(await refused.json()).toMatchObject({ code: 'SLUICE_HTTP_OVERLOADED' })
  for (const path of ['/livez', '/readyz', '/metrics']) expect((await fetch(origin + path)).status).toBe(200)
  expect((await admin('GET', '/admin/ratelimits')).status).toBe(200)
  // Not before it is well below what was too much.
  setLoopDelay(600)
  advance(250_000)
  expect((await check(CHECK)).status).toBe(503)
  setLoopDelay(400)
  advance(250_000)
  const again = await check(CHECK)
  expect(again.status).toBe(200)
  // What was turned away cost nothing.
  expect((await answerOf(again)).remaining).toBe(99)
})
