import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { systemClock } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import { startPostgres } from '@sluice/testing/servers'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openConfigStore } from '../open-config-store.ts'
import { figure, temporaryFolder, until } from '../waiting.test.support.ts'
import type { FromChild, ToChild } from './follower-child.test.support.ts'

const CHILD = fileURLToPath(new URL('./follower-child.test.support.ts', import.meta.url))
const PROCESSES = 2
const NODES_EACH = 4
const NODES = PROCESSES * NODES_EACH
const CHANGES = 20

/** When each node had each entity in force; milliseconds since 1970. */
type Arrivals = Map<string, number[]>

async function startChild(url: string, arrivals: Arrivals): Promise<ChildProcess> {
  const child = fork(CHILD, { execArgv: ['--conditions=source', '--no-warnings'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const heard: string[] = []
  child.on('message', (message: FromChild) => {
    heard.push(message.type)
    if (message.type !== 'in-force') return
    arrivals.set(message.entity, [...(arrivals.get(message.entity) ?? []), message.atMs])
  })
  await until('the process runs', () => heard.includes('running'))
  child.send({ type: 'follow', url, nodes: NODES_EACH } satisfies ToChild)
  await until('its nodes follow', () => heard.includes('following'))
  return child
}

async function endChild(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit')
  child.send({ type: 'end' } satisfies ToChild)
  await exited
}

async function measure(url: string): Promise<{ readonly lagsMs: readonly number[]; readonly commitsMs: number }> {
  const store = await openConfigStore(url)
  onTestFinished(() => store.close())
  const arrivals: Arrivals = new Map()
  const children = await Promise.all(Array.from({ length: PROCESSES }, () => startChild(url, arrivals)))
  const lagsMs: number[] = []
  let commitsMs = 0
  for (let change = 0; change < CHANGES; change++) {
    const entity = `user-${change}`
    const beganMs = systemClock.nowMicros() / MICROS_PER_MS
    await store.overrides.put(
      { dimension: 'user', entity, resource: '*', terms: { limit: change } },
      { name: 'operator' },
    )
    commitsMs += systemClock.nowMicros() / MICROS_PER_MS - beganMs
    await until(`every node has ${entity}`, () => arrivals.get(entity)?.length === NODES)
    lagsMs.push(...arrivals.get(entity)!.map((atMs) => atMs - beganMs))
  }
  await Promise.all(children.map(endChild))
  return { lagsMs: lagsMs.sort((one, other) => one - other), commitsMs: commitsMs / CHANGES }
}

describe(`a change reaches all ${NODES} nodes in ${PROCESSES} processes in under a second`, () => {
  it('by notifications of PostgreSQL', async () => {
    const server = await startPostgres()
    onTestFinished(() => server.close())
    const { url } = await server.createDatabase()
    const { lagsMs, commitsMs } = await measure(url)
    figure(
      `PostgreSQL: from before the commit to in force: median ${lagsMs[lagsMs.length >> 1]} ms, slowest ` +
        `${lagsMs.at(-1)} ms of ${lagsMs.length}; the commit itself ${commitsMs.toFixed(1)} ms`,
    )
    expect(lagsMs).toHaveLength(NODES * CHANGES)
    expect(lagsMs.at(-1)).toBeLessThan(1000)
  })

  it('by looking at a shared SQLite file', async () => {
    const { lagsMs } = await measure(`sqlite:${await temporaryFolder()}/sluice.db`)
    figure(`SQLite: median ${lagsMs[lagsMs.length >> 1]} ms, slowest ${lagsMs.at(-1)} ms of ${lagsMs.length}`)
    expect(lagsMs).toHaveLength(NODES * CHANGES)
    expect(lagsMs.at(-1)).toBeLessThan(1000)
  })
})
