// `npm run trace-paths`: which source files a request runs through, found by V8 coverage. Each path is the second
// request of its kind, without the functions that also run while it is idle. `-- redis` shows the files of the
// paths whose name has that word, and how many functions of each were called.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import type { Store } from '@sluice/core'
import { createLimiter, memoryStore } from '@sluice/core'
import { PolicyEngine } from '@sluice/core/policy'
import { redisStore } from '@sluice/store-redis'
import { startRedis } from '@sluice/testing/servers'
import { runCli } from '../apps/cli/src/cli.ts'
import { COMMANDS } from '../apps/cli/src/command-table.ts'
import { readEnvironment, systemEvery, systemNowMs, systemWait } from '../apps/cli/src/environment.ts'
import { streamTerminal } from '../apps/cli/src/output/terminal.ts'
import { nodePrograms } from '../apps/cli/src/programs/child-program.ts'
import { runTool } from './tool-error.ts'
import type { CalledFunctions } from './trace-paths/coverage.ts'
import { Coverage } from './trace-paths/coverage.ts'
import type { TracedProcess } from './trace-paths/traced-process.ts'
import { startTraced } from './trace-paths/traced-process.ts'

/** How long the functions of an idle process are collected. */
const IDLE_MS = 2500

const RULES = { rules: [{ resource: '*', dimension: 'user', limit: 100, window: '1m' }] } as const

/** Reads what was called since the last time. */
type Take = () => Promise<CalledFunctions>

/** Traces the second run of `action`, without what runs while it is idle. */
async function trace(take: Take, action: () => unknown): Promise<CalledFunctions> {
  await action()
  await take()
  await pause(IDLE_MS)
  const idle = await take()
  await action()
  return without(await take(), idle)
}

function without(called: CalledFunctions, idle: CalledFunctions): CalledFunctions {
  const rest = [...called].map(
    ([path, names]) => [path, names.filter((name) => !idle.get(path)?.includes(name))] as const,
  )
  return new Map(rest.filter(([, names]) => names.length > 0))
}

async function traceLibrary(show: Show, take: Take): Promise<void> {
  const limiter = createLimiter({ limit: 100, window: '1m' })
  show('check in memory', await trace(take, () => limiter.check('user-1')))
  const redis = await startRedis()
  const store = redisStore(redis.url)
  const shared = createLimiter({ limit: 100, window: '1m', store })
  show('check on Redis by URL', await trace(take, () => shared.check('user-1')))
  for (const [name, used] of [
    ['policy engine in memory', memoryStore()],
    ['policy engine on Redis', store],
  ] as const) {
    const engine = new PolicyEngine({ ruleSet: RULES, store: used as Store })
    show(name, await trace(take, () => engine.check({ resource: '/orders/17', method: 'GET', user: 'u1' })))
  }
  await store.close()
  await redis.stop()
}

async function traceService(show: Show, takeHere: Take): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-trace-'))
  const service = await startTraced(['--port', '0', '--data-dir', folder, '--threads', '1', '--log-level', 'error'])
  try {
    const take = (): Promise<CalledFunctions> => service.take()
    let limit = 100
    // Other numbers each time: equal rules would not be stored again.
    const putRules = (): Promise<void> => {
      const body = { resource: '*', rules: [{ dimension: 'user', limit: limit++, window: '1m' }] }
      return ask(service, { method: 'PUT', path: '/admin/ratelimits', body })
    }
    show('PUT /admin/ratelimits', await trace(take, putRules))
    const check = { method: 'POST', path: '/internal/ratelimit/check', body: { resource: '/orders/17', user: 'u1' } }
    show('POST /internal/ratelimit/check', await trace(take, () => ask(service, check)))
    const command = ['tiers', 'list', '--json', '--url', service.url]
    show('sluice tiers list', await trace(takeHere, () => runCommand(command, service.firstKey)))
  } finally {
    await service.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Runs a command of the CLI in this process. Its result is not shown. */
async function runCommand(args: readonly string[], apiKey: string): Promise<void> {
  const environment = { ...readEnvironment(), apiKey }
  await runCli(args, {
    commands: COMMANDS,
    environment,
    terminal: streamTerminal(new PassThrough().resume(), process.stderr, environment.variables),
    nowMs: systemNowMs,
    wait: systemWait,
    every: systemEvery,
    nodeVersion: process.versions.node,
    readText: () => Promise.reject(new Error('no file is read')),
    programs: nodePrograms(import.meta.url),
    signal: new AbortController().signal,
    version: '0.0.0',
  })
}

interface Asked {
  readonly method: string
  readonly path: string
  readonly body: unknown
}

async function ask({ url, firstKey }: TracedProcess, { method, path, body }: Asked): Promise<void> {
  const headers = { authorization: `Bearer ${firstKey}`, 'content-type': 'application/json' }
  const response = await fetch(new URL(path, url), { method, headers, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(`${method} ${path} was answered with ${response.status}: ${await response.text()}`)
  await response.arrayBuffer()
}

type Show = (name: string, called: CalledFunctions) => void

await runTool(async () => {
  const [word] = process.argv.slice(2)
  const show: Show = (name, called) => {
    const inService = [...called.keys()].filter((path) => path.startsWith('apps/')).length
    console.log(`${called.size} files${inService > 0 ? `, ${inService} of them in apps` : ''}: ${name}`)
    if (word === undefined || !name.toLowerCase().includes(word.toLowerCase())) return
    for (const [path, names] of [...called].sort()) console.log(`    ${path} (${names.length})`)
  }
  const coverage = await Coverage.start()
  const take = (): Promise<CalledFunctions> => coverage.take()
  await traceLibrary(show, take)
  await traceService(show, take)
})
// Pipes of servers that have ended would keep it waiting.
process.exit()
