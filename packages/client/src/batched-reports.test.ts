import type { CallReport } from '@sluice/contract'
import { parseReportRequest, problemDocument } from '@sluice/contract'
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from './client-options.ts'
import { createClient } from './create-client.ts'
import { answerJson, TableServer } from './table-server.test.support.ts'

/** A server that takes reports as the service does, and what it counted. */
async function start(options: Partial<ClientOptions> = {}): Promise<{
  readonly server: TableServer
  readonly counted: CallReport[]
  readonly client: ReturnType<typeof createClient>
}> {
  const server = await TableServer.start()
  const counted: CallReport[] = []
  server.answer = ({ body }, response) => {
    const parsed = parseReportRequest(body)
    if (parsed.ok) {
      counted.push(...parsed.reports)
      return answerJson(response, 200, { count: parsed.reports.length })
    }
    response.writeHead(400, { 'Content-Type': 'application/problem+json' })
    const { problems: errors } = parsed
    response.end(JSON.stringify(problemDocument('SLUICE_HTTP_INVALID_REQUEST', { detail: 'Some fields.', errors })))
    return true
  }
  return { server, counted, client: createClient({ url: server.url, retry: false, ...options }) }
}

const calls = (count: number): CallReport[] =>
  Array.from({ length: count }, (_, index) => ({ resource: `/${index}`, method: 'GET', failed: index % 2 === 0 }))

describe('reports of one turn', () => {
  it('go together, in their order', async () => {
    const { server, counted, client } = await start()
    expect(await Promise.all(calls(3).map((call) => client.report(call)))).toEqual([undefined, undefined, undefined])
    expect(server.asked.map(({ id }) => id)).toEqual(['report'])
    expect(counted).toEqual(calls(3))
  })

  it('are sent one by one on request', async () => {
    const { server, counted, client } = await start({ batch: false })
    await Promise.all(calls(3).map((call) => client.report(call)))
    expect([server.asked.length, counted.length]).toEqual([3, 3])
  })

  it('are at most as many as the service takes at once', async () => {
    const { server, counted, client } = await start()
    await Promise.all(calls(2500).map((call) => client.report(call)))
    expect([server.asked.length, counted.length]).toEqual([3, 2500])
    server.asked.length = 0
    const wordy = (call: CallReport): CallReport => ({ ...call, resource: `/${'ü'.repeat(2000)}` })
    await Promise.all(calls(1000).map((call) => client.report(wordy(call))))
    expect(server.asked.length).toBeGreaterThan(1)
    for (const { body } of server.asked) expect(Buffer.byteLength(JSON.stringify(body))).toBeLessThan(1_048_576)
  })

  it('do not fail for one that cannot be understood, nor are they counted twice', async () => {
    const { counted, client } = await start()
    const wrong = { resource: '/x' } as unknown as CallReport
    const [one, two] = calls(2) as [CallReport, CallReport]
    const outcomes = await Promise.allSettled([client.report(one), client.report(wrong), client.report(two)])
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(outcomes[1]).toMatchObject({ reason: { errors: [{ path: '/reports/0/failed' }] } })
    expect(counted).toEqual([one, two])
  })

  it('fail when not as many were counted', async () => {
    const { server, client } = await start()
    server.answer = (_, response) => answerJson(response, 200, { count: 1 })
    for (const outcome of await Promise.allSettled(calls(2).map((call) => client.report(call)))) {
      expect(outcome).toMatchObject({ reason: { code: 'SLUICE_CLIENT_UNEXPECTED_ANSWER' } })
    }
  })
})
