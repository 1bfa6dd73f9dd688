import type { CheckAnswer, Explanation, UsageAnswer } from '@sluice/contract'
import { freePort } from '@sluice/testing/servers'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { cliRunner, type RunOutcome } from '../cli.test.support.ts'
import { type ServiceProcess, startServiceProcess } from '../service-process.test.support.ts'

// Commands against a real service whose Redis is unreachable: rules in failure mode `open` allow every call.

let service: ServiceProcess

beforeAll(async () => {
  service = await startServiceProcess('--redis-url', `redis://127.0.0.1:${await freePort()}`, '--failure-mode', 'open')
  const files = { 'rule.yaml': 'resource: /data\nrules:\n  - { dimension: user, limit: 5, window: 1h }\n' }
  expect(await sluice(['rules', 'put', 'rule.yaml'], files)).toMatchObject({ code: 0 })
})

afterAll(() => service.close())

async function sluice(args: readonly string[], files: Readonly<Record<string, string>> = {}): Promise<RunOutcome> {
  const env = { SLUICE_URL: service.url, SLUICE_API_KEY: service.adminKey }
  return await cliRunner({ env, files })(...args)
}

const caller = ['/data', '--user', 'u1']

it('check prints the limit, and that what remains is unknown', async () => {
  const { out, code } = await sluice(['check', ...caller])
  expect(code).toBe(0)
  expect(out).toMatch(/^limit +5$/m)
  expect(out).toMatch(/^remaining +unknown$/m)
  expect(out).not.toMatch(/^resets at/m)
  const answer = (await sluice(['check', ...caller, '--json'])).json<CheckAnswer>()
  expect(answer).toMatchObject({ allowed: true, limit: 5, remaining: null, resetAt: null, failure: { mode: 'open' } })
})

it('usage and explain print that the use is unknown', async () => {
  const counter = { limit: 5, used: null, remaining: null, resetAt: null, blockedUntil: null }
  expect((await sluice(['usage', ...caller])).out).toMatch(/ unknown +5 +unknown +- /)
  expect((await sluice(['usage', ...caller, '--json'])).json<UsageAnswer>().usage).toMatchObject([
    { counters: [counter] },
  ])
  expect((await sluice(['explain', ...caller])).out).toMatch(/^ +used unknown of 5, resets at -$/m)
  const explained = (await sluice(['explain', ...caller, '--json'])).json<Explanation>()
  expect(explained.rules[0]).toMatchObject({ counters: [counter] })
  expect(explained.decision).toMatchObject({ limit: 5, remaining: null })
})
