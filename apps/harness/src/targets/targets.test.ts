import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@sluice/client'
import { systemClock } from '@sluice/core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { runHarness } from '../harness.ts'
import type { TestResult } from '../tests/admission-tests.ts'
import { TESTED_ALGORITHMS } from '../tests/tested-algorithms.ts'
import { STORES } from './store-targets.ts'

interface Ran {
  readonly exitCode: number
  readonly output: string
  readonly errors: readonly string[]
}

async function run(args: readonly string[], apiKey?: string): Promise<Ran> {
  const output: string[] = []
  const errors: string[] = []
  const exitCode = await runHarness(args, {
    algorithms: TESTED_ALGORITHMS,
    stores: STORES,
    stopwatch: systemClock,
    print: (text) => void output.push(`${text}\n`),
    printError: (text) => void errors.push(text),
    apiKey,
  })
  return { exitCode, output: output.join(''), errors }
}

function moduleWith(text: string, name = 'limiter.mjs'): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-target-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

const EXACT = `class Limiter {
  constructor(max) { this.max = max; this.used = new Map() }
  tryAcquire(node) {
    const used = this.used.get(node) ?? 0
    if (used >= this.max) return false
    this.used.set(node, used + 1)
    return true
  }
}`

describe('--target with a module', () => {
  it('tests the limiters that a function makes, and prints the required form and a summary', async () => {
    const path = moduleWith(`${EXACT}\nexport default (max) => new Limiter(max)`)
    const { exitCode, output, errors } = await run(['--target', path, '--max', '100,500'])
    const block = (max: number): string =>
      `MaxRequests = ${max}\nRaceTest: Approved <= ${max} | Time=_ms\nAccuracyTest: Approved <= ${max} | ` +
      'Requests=2000 | Time=_ms\nDistributedTest: Nodes=20, Req/Node=200 | Time=_ms\n'
    expect(output.replaceAll(/=\d+ms/g, '=_ms')).toBe(
      `Algorithm: limiter.mjs\n-----\n\n${block(100)}\n${block(500)}\n2 of 2 exact\n`,
    )
    expect(errors).toEqual([expect.stringContaining('one thread')])
    expect(exitCode).toBe(0)
  })

  it.each([
    ['a limiter as default', 'export default new Limiter(7)', 'limiter.mjs'],
    ['a limiter by name', 'export const limiter = new Limiter(7)', 'limiter.mjs'],
    ['a function by name', 'export const createLimiter = async (max) => new Limiter(max)', 'limiter.mjs'],
    ['CommonJS', 'module.exports = new Limiter(7)', 'limiter.cjs'],
    [
      'promises',
      'const one = new Limiter(7); export default { tryAcquire: async (node) => one.tryAcquire(node) }',
      'a.mjs',
    ],
  ])('takes %s', async (_, text, name) => {
    const { exitCode, output } = await run(['--target', moduleWith(`${EXACT}\n${text}`, name), '--max', '7', '--json'])
    const [result] = JSON.parse(output) as TestResult[]
    expect(result).toMatchObject({ race: { approved: 7 }, accuracy: { approved: 7, approvedAfterReset: null } })
    expect(exitCode).toBe(0)
  })

  it('asks again after a reset where there is one', async () => {
    const reset = 'Limiter.prototype.reset = function (node) { this.used.delete(node) }'
    const path = moduleWith(`${EXACT}\n${reset}\nexport default new Limiter(7)`)
    const [result] = JSON.parse((await run(['--target', path, '--max', '7', '--json'])).output) as TestResult[]
    expect(result?.accuracy.approvedAfterReset).toBe(7)
    const stuck = moduleWith(`${EXACT}\nLimiter.prototype.reset = () => {}\nexport default new Limiter(7)`)
    const { exitCode, output, errors } = await run(['--target', stuck, '--max', '7'])
    expect(exitCode).toBe(1)
    expect(output).toMatch(/\n0 of 1 exact\n$/)
    expect(errors[1]).toContain('AccuracyTest after the reset approved 0 of 2000, expected exactly 7.')
  })

  it('finds a limiter that waits between its question and its count', async () => {
    const racy =
      'const used = new Map(); export default (max) => ({ tryAcquire: async (node) => { const n = used.get(node) ' +
      '?? 0; await null; used.set(node, n + 1); return n < max } })'
    const { exitCode, output, errors } = await run(['--target', moduleWith(racy), '--max', '100'])
    expect(exitCode).toBe(1)
    expect(output).toMatch(/\n0 of 1 exact\n$/)
    expect(errors[1]).toMatch(/^Wrong count: limiter\.mjs, MaxRequests = 100: RaceTest approved 5000 of 5000, /)
  })

  it.each([
    ['several limits for one limiter', `${EXACT}\nexport default new Limiter(7)`, '--max with its limit'],
    ['exports without a limiter', 'export const other = 1', 'a limiter with tryAcquire(nodeId)'],
    ['a module that throws', 'throw new Error("no luck")', 'no luck'],
    ['a function without a limiter', 'export default () => 1', 'no limiter from the function'],
    [
      'answers that are no booleans',
      'export default () => ({ tryAcquire: () => ({ allowed: false }) })',
      'true or false',
    ],
  ])('rejects %s', async (_, text, expected) => {
    await expect(run(['--target', moduleWith(text)])).rejects.toMatchObject({
      code: 'SLUICE_HARNESS_TARGET_FAILED',
      message: expect.stringContaining(expected),
    })
  })

  it('rejects a path without a file, and a store beside a target', async () => {
    await expect(run(['--target', '/nowhere.mjs'])).rejects.toMatchObject({ code: 'SLUICE_HARNESS_TARGET_FAILED' })
    const both = await run(['--target', '/nowhere.mjs', '--store', 'memory'])
    expect([both.exitCode, both.errors]).toEqual([2, [expect.stringContaining('--target with --store')]])
  })
})

/** A limit that refills, one with a burst, and one of slots: each of the ten is 8,200 requests. */
const CHOSEN = ['token-bucket', 'hybrid', 'concurrency']

describe('--target with the URL of a service', () => {
  let service: ChildProcess
  let folder: string
  let url: string
  let key: string

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-target-'))
    const main = join(import.meta.dirname, '../../../service/src/main.ts')
    const args = ['--conditions=source', main, '--port', '0', '--data-dir', folder, '--drain-ms', '0']
    service = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'], env: {} })
    let said = ''
    for await (const piece of service.stdout!.setEncoding('utf8')) {
      said += piece
      if (said.includes('Try it:')) break
    }
    url = /http:\/\/127\.0\.0\.1:\d+/.exec(said)![0]
    key = /slk_\w+/.exec(said)![0]
  })

  afterAll(async () => {
    service.kill('SIGKILL')
    await once(service, 'close')
    rmSync(folder, { recursive: true, force: true })
  })

  it('shows that algorithms of the service are exact, and leaves nothing behind', async () => {
    const client = createClient({ url, token: key })
    const before = await client.call('listRateLimits', {})
    const { exitCode, output, errors } = await run(
      ['--target', url, '--algorithms', CHOSEN.join(), '--max', '20', '--attempts', '200', '--json'],
      key,
    )
    expect(errors).toEqual([])
    const results = JSON.parse(output) as TestResult[]
    expect(results).toHaveLength(CHOSEN.length)
    for (const { race, accuracy, distributed } of results) {
      expect(race).toMatchObject({ attempts: 200, threads: 8, approved: 20 })
      expect(accuracy).toMatchObject({ approved: 20, approvedAfterReset: 20 })
      expect(distributed.approvedPerNode).toEqual(Array.from({ length: 20 }, () => 20))
    }
    expect(exitCode).toBe(0)
    const after = await client.call('listRateLimits', {})
    expect(after.items).toEqual(before.items)
    expect((await client.call('listTiers', {})).items).toEqual([])
  })

  it('says what is missing: a key, a service', async () => {
    await expect(run(['--target', url])).rejects.toMatchObject({
      code: 'SLUICE_HARNESS_TARGET_FAILED',
      message: expect.stringContaining('SLUICE_API_KEY with the role editor or admin'),
    })
    await expect(run(['--target', 'http://127.0.0.1:9'], key)).rejects.toMatchObject({
      code: 'SLUICE_HARNESS_TARGET_FAILED',
      message: expect.stringContaining('SLUICE_CLIENT_UNREACHABLE'),
    })
  })

  it('does not take an exemption for an approval', async () => {
    const client = createClient({ url, token: key })
    const body = { match: { dimension: 'user', entities: ['race'] } }
    await client.call('putExemption', { parameters: { name: 'race' }, body })
    onTestFinished(async () => void (await client.call('deleteExemption', { parameters: { name: 'race' } })))
    await expect(run(['--target', url, '--algorithms', 'gcra', '--max', '5'], key)).rejects.toMatchObject({
      message: expect.stringContaining('"exempt"'),
    })
    expect((await client.call('listTiers', {})).items).toEqual([])
  })
})
