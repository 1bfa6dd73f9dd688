import type { ChildProcess } from 'node:child_process'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DecisionRecord, NodesAnswer, OverviewAnswer, SessionState, TopAnswer } from '@sluice/contract'
import { CHECK_PATH } from '@sluice/contract'
import { systemNowMs, systemSleep } from '@sluice/runtime'
import { startPostgres, startRedis } from '@sluice/testing/servers'
import { describe, expect, it, onTestFinished } from 'vitest'

// Two processes of the service on real servers, with the real clock.

const MAIN = new URL('../main.ts', import.meta.url)

interface Process {
  readonly child: ChildProcess
  readonly origin: string
  readonly key: string | undefined
}

async function start(environment: Readonly<Record<string, string>>): Promise<Process> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-figures-'))
  const child = fork(MAIN, [], {
    execArgv: ['--conditions=source'],
    env: { PORT: '0', SLUICE_DATA_DIR: folder, SLUICE_DRAIN_MS: '0', ...environment },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  onTestFinished(async () => {
    await kill(child)
    await rm(folder, { recursive: true, force: true })
  })
  let key: string | undefined
  for (;;) {
    const [message] = (await once(child, 'message')) as [{ readonly url?: string; readonly firstKey?: string }]
    key = message.firstKey ?? key
    if (message.url !== undefined) return { child, origin: new URL(message.url).origin, key }
  }
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  // Its channel to this process may end with an error.
  child.on('error', () => undefined)
  const ended = new Promise((resolve) => void child.once('exit', resolve))
  child.kill('SIGKILL')
  await ended
}

/** Waits until something holds, and returns it. */
async function until<T>(look: () => Promise<T>, holds: (found: T) => boolean): Promise<T> {
  for (;;) {
    const found = await look()
    if (holds(found)) return found
    await systemSleep(100)
  }
}

async function denials({ origin }: Process, user: string, times: number): Promise<void> {
  const body = JSON.stringify({ userId: user, resource: '/orders' })
  const headers = { 'Content-Type': 'application/json' }
  for (let time = 0; time < times; time++) {
    const { status } = await fetch(origin + CHECK_PATH, { method: 'POST', headers, body })
    expect(status).toBe(429)
  }
}

async function twoProcesses(environment: Readonly<Record<string, string>>) {
  const one = await start(environment)
  const two = await start(environment)
  const key = one.key!
  const get = async <T>({ origin }: Process, path: string): Promise<T> => {
    const response = await fetch(origin + path, { headers: { Authorization: `Bearer ${key}` } })
    expect([path, response.status]).toEqual([path, 200])
    return (await response.json()) as T
  }
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
  const body = JSON.stringify({ dimension: 'user', entity: 'ann', duration: '1h' })
  expect((await fetch(`${one.origin}/admin/blocks`, { method: 'PUT', headers, body })).status).toBe(200)
  // The block has come to the other node.
  const check = { method: 'POST', headers, body: JSON.stringify({ userId: 'ann', resource: '/free' }) }
  await until(
    async () => (await fetch(two.origin + CHECK_PATH, check)).status,
    (status) => status === 429,
  )
  return { one, two, get, key }
}

type Sums = Awaited<ReturnType<typeof twoProcesses>> & { readonly denied: number }

async function expectSums(environment: Readonly<Record<string, string>>): Promise<Sums> {
  const { one, two, get, key } = await twoProcesses(environment)
  await until(
    () => get<NodesAnswer>(one, '/admin/nodes'),
    ({ nodes }) => nodes.length === 2,
  )
  const before = (await get<TopAnswer>(two, '/admin/top?node=self')).dimensions[0]!.entries[0]!.denials
  await denials(one, 'ann', 30)
  await denials(two, 'ann', 12)
  const top = await until(
    () => get<TopAnswer>(one, '/admin/top'),
    ({ dimensions }) => (dimensions[0]?.entries[0]?.denials ?? 0) >= 42 + before,
  )
  expect(top).toMatchObject({ nodes: 2, dimensions: [{ dimension: 'user', entries: [{ entity: 'ann' }] }] })
  expect(top.dimensions[0]!.entries[0]).toMatchObject({ denials: 42 + before, error: 0 })
  const [own] = (await get<TopAnswer>(one, '/admin/top?node=self')).dimensions[0]!.entries
  expect(own!.denials).toBe(30)
  // Decisions of both, seen from one.
  const decisions = await until(
    () => get<{ items: readonly DecisionRecord[] }>(one, '/admin/decisions?outcome=denied&limit=1000'),
    ({ items }) => new Set(items.map(({ node }) => node)).size === 2,
  )
  const { id } = decisions.items[0]!
  expect(await get(one, `/admin/decisions/${id}/explain`)).toMatchObject({ decision: { id }, unknown: [] })
  return { one, two, get, key, denied: 42 + before }
}

/** History adds up once both have written their rows. */
async function expectHistory({ one, get, denied }: Sums): Promise<void> {
  const overview = await until(
    () => get<OverviewAnswer>(one, '/admin/overview'),
    ({ denials: counts }) => counts.reduce((sum, count) => sum + count, 0) >= denied,
  )
  expect(overview.denials.reduce((sum, count) => sum + count, 0)).toBe(denied)
  expect(overview.at).toHaveLength(overview.denials.length)
}

/** A session of one is good at the other, until it is ended there. */
async function expectSessions({ one, two, key }: Sums): Promise<void> {
  const json = { 'Content-Type': 'application/json' }
  const signIn = { method: 'POST', headers: json, body: JSON.stringify({ apiKey: key }) }
  const signedIn = await fetch(`${one.origin}/auth/session`, signIn)
  const cookie = signedIn.headers.get('set-cookie')!.split(';')[0]!
  const { csrfToken } = (await signedIn.json()) as SessionState
  const readAt = async ({ origin }: Process) =>
    (await fetch(`${origin}/admin/audit`, { headers: { Cookie: cookie } })).status
  expect([await readAt(one), await readAt(two)]).toEqual([200, 200])
  const out = { method: 'DELETE', headers: { Cookie: cookie, 'X-CSRF-Token': csrfToken! } }
  expect((await fetch(`${two.origin}/auth/session`, out)).status).toBe(204)
  expect(await readAt(two)).toBe(401)
  await until(
    () => readAt(one),
    (status) => status === 401,
  )
}

/** A killed node is lost within the stated time, and its figures stay out. */
async function expectLoss({ one, two, get }: Sums, lostMs: number): Promise<void> {
  await kill(two.child)
  const killedAt = systemNowMs()
  await until(
    () => get<NodesAnswer>(one, '/admin/nodes'),
    ({ nodes }) => nodes.filter(({ isLost }) => !isLost).length === 1,
  )
  expect(systemNowMs() - killedAt).toBeLessThan(lostMs + 4000)
  expect((await get<TopAnswer>(one, '/admin/top')).nodes).toBe(1)
}

describe.concurrent('two processes', () => {
  it('on one Redis and database have the figures of both', { timeout: 90_000 }, async () => {
    const [redis, postgres] = await Promise.all([startRedis(), startPostgres()])
    onTestFinished(async () => {
      await redis.close()
      await postgres.close()
    })
    const sums = await expectSums({ REDIS_URL: redis.url, DATABASE_URL: postgres.url })
    await expectHistory(sums)
    await expectLoss(sums, 5000)
  })

  it('on one database have the figures of both', { timeout: 90_000 }, async () => {
    const postgres = await startPostgres()
    onTestFinished(() => postgres.close())
    const sums = await expectSums({ DATABASE_URL: postgres.url })
    await expectSessions(sums)
    await expectLoss(sums, 10_000)
  })
})
