import { systemClock } from '@sluice/core'
import type { RedisServer } from '@sluice/testing/servers'
import { startRedis } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runHarness } from '../harness.ts'
import type { TestResult } from '../tests/admission-tests.ts'
import { TESTED_ALGORITHMS } from '../tests/tested-algorithms.ts'
import { STORES } from './store-targets.ts'

let server: RedisServer

beforeAll(async () => {
  server = await startRedis({ config: { 'maxmemory-policy': 'allkeys-lru' } })
})

afterAll(() => server.close())

async function run(...args: string[]): Promise<{ exitCode: number; output: string; errors: readonly string[] }> {
  const output: string[] = []
  const errors: string[] = []
  const exitCode = await runHarness(['--store', 'redis', '--redis-url', server.url, '--threads', '2', ...args], {
    algorithms: TESTED_ALGORITHMS,
    stores: STORES,
    stopwatch: systemClock,
    print: (text) => void output.push(text),
    printError: (text) => void errors.push(text),
  })
  return { exitCode, output: output.join('\n'), errors }
}

describe('a run on Redis', () => {
  it('is exact, leaves the server as it was, and tells once what is wrong with it', async () => {
    await server.command('SET', 'sluice:1:{=race}', 'of another program')
    const few = ['--algorithms', 'gcra,concurrency', '--max', '150', '--attempts', '1000']
    const { exitCode, output, errors } = await run('--json', ...few)
    const results: TestResult[] = JSON.parse(output)
    expect(results.map(({ algorithm, maxRequests }) => [algorithm, maxRequests])).toEqual([
      ['GCRA', 150],
      ['Concurrency', 150],
    ])
    for (const { race, accuracy, distributed } of results) {
      expect(race).toMatchObject({ attempts: 1000, threads: 2, approved: 150 })
      expect(accuracy).toMatchObject({ requests: 2000, approved: 150, approvedAfterReset: 150 })
      expect(distributed.approvedPerNode).toEqual(Array.from({ length: 20 }, () => 150))
    }
    expect(errors).toEqual([expect.stringMatching(/^SLUICE_EVICTION: .*allkeys-lru/)])
    expect(exitCode).toBe(0)
    expect(await server.command('KEYS', '*')).toEqual(['sluice:1:{=race}'])
  })
})
