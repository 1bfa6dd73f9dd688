import type { ExecFileOptions } from 'node:child_process'
import { execFile } from 'node:child_process'
import { freePort } from '@sluice/testing/servers'
import { describe, expect, it } from 'vitest'
import type { TestResult } from './tests/admission-tests.ts'
import { TESTED_ALGORITHMS } from './tests/tested-algorithms.ts'

// The process as a user starts it.

interface Ended {
  readonly exitCode: number | string | null | undefined
  readonly stdout: string
  readonly stderr: string
}

const MAIN = ['--conditions=source', `${import.meta.dirname}/main.ts`]

function runMain(...args: string[]): Promise<Ended> {
  return runMainWith({}, args)
}

function runMainWith(options: ExecFileOptions, args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [...MAIN, ...args], { ...options, encoding: 'utf8' }, (error, stdout, stderr) => {
      resolve({ exitCode: error === null ? 0 : error.code, stdout, stderr })
    })
  })
}

describe('the process', () => {
  it('shows that every algorithm approves exactly its limit under real threads', async () => {
    const { exitCode, stdout, stderr } = await runMain('--json', '--max', '100')
    expect(stderr).toBe('')
    expect(exitCode).toBe(0)
    const ms = expect.any(Number)
    const expected = TESTED_ALGORITHMS.map(({ title }) => ({
      algorithm: title,
      maxRequests: 100,
      race: { attempts: 5000, threads: 8, approved: 100, ms },
      accuracy: { requests: 2000, approved: 100, approvedAfterReset: 100, ms },
      distributed: { nodes: 20, requestsPerNode: 200, approvedPerNode: Array.from({ length: 20 }, () => 100), ms },
    }))
    expect(JSON.parse(stdout) satisfies TestResult[]).toEqual(expected)
  })

  it('shows it when the attempts cannot be divided evenly, and limits above the requests of a node', async () => {
    const { exitCode, stdout } = await runMain('--threads', '7', '--attempts', '3001', '--max', '2,999', '--json')
    expect(exitCode).toBe(0)
    const results: TestResult[] = JSON.parse(stdout)
    expect(results.map(({ race }) => race.approved)).toEqual(TESTED_ALGORITHMS.flatMap(() => [2, 999]))
    expect(results.map(({ accuracy }) => accuracy.approvedAfterReset)).toEqual(
      TESTED_ALGORITHMS.flatMap(() => [2, 999]),
    )
    for (const { maxRequests, distributed } of results) {
      expect(distributed.approvedPerNode).toEqual(Array.from({ length: 20 }, () => Math.min(200, maxRequests)))
    }
  })

  it('prints the report, and nothing else', async () => {
    const { exitCode, stdout, stderr } = await runMain('--algorithms', 'fixed-window', '--max', '100')
    expect(stdout.replaceAll(/=\d+ms/g, '=_ms')).toBe(`Algorithm: Fixed Window
-----

MaxRequests = 100
RaceTest: Approved <= 100 | Time=_ms
AccuracyTest: Approved <= 100 | Requests=2000 | Time=_ms
DistributedTest: Nodes=20, Req/Node=200 | Time=_ms

1 of 1 exact
`)
    expect(stderr).toBe('')
    expect(exitCode).toBe(0)
  })

  it('ends with 2 for an option that it does not have', async () => {
    const { exitCode, stdout, stderr } = await runMain('--loops', '3')
    expect(stdout).toBe('')
    expect(stderr).toContain('Received "--loops"; expected one of --threads')
    expect(exitCode).toBe(2)
  })
})

describe('the process, on Redis', () => {
  it('starts a server and shows that processes approve exactly the limit', async () => {
    const chosen = ['--algorithms', 'sliding-window-log,hybrid', '--max', '100']
    const { exitCode, stdout, stderr } = await runMain('--store', 'redis', '--threads', '3', '--json', ...chosen)
    expect(stderr).toBe('')
    expect(exitCode).toBe(0)
    const ms = expect.any(Number)
    const expected = ['Sliding Window Log', 'Hybrid'].map((algorithm) => ({
      algorithm,
      maxRequests: 100,
      race: { attempts: 5000, threads: 3, approved: 100, ms },
      accuracy: { requests: 2000, approved: 100, approvedAfterReset: 100, ms },
      distributed: { nodes: 20, requestsPerNode: 200, approvedPerNode: Array.from({ length: 20 }, () => 100), ms },
    }))
    expect(JSON.parse(stdout) satisfies TestResult[]).toEqual(expected)
  })

  it('ends with 1 where nothing listens', async () => {
    const url = `redis://127.0.0.1:${await freePort()}`
    const { exitCode, stdout, stderr } = await runMain('--store', 'redis', '--redis-url', url)
    expect(stdout).toBe('')
    expect(stderr).toMatch(/^SLUICE_HARNESS_REDIS_UNAVAILABLE: there is no Redis to run on\. Received .*ECONNREFUSED/)
    expect(exitCode).toBe(1)
  })

  it('says what to install where there is no redis-server', async () => {
    const { exitCode, stdout, stderr } = await runMainWith({ env: { PATH: '/nowhere' } }, ['--store', 'redis'])
    expect(stdout).toBe('')
    expect(stderr).toContain('apt-get install redis-server), or --redis-url')
    expect(exitCode).toBe(1)
  })
})
