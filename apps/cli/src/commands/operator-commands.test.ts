import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { Server } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type {
  Alert,
  AuditRecord,
  CheckAnswer,
  DeadLetter,
  DecisionRecord,
  DenyEntry,
  Exemption,
  Incident,
  Membership,
  NodesAnswer,
  Session,
  SessionState,
  Stored,
  Tier,
} from '@sluice/contract'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RunOptions, RunOutcome } from '../cli.test.support.ts'
import { cliRunner } from '../cli.test.support.ts'
import type { ServiceProcess } from '../service-process.test.support.ts'
import { startServiceProcess } from '../service-process.test.support.ts'

// What operators do besides rules and keys, against the real service, which takes every denied check for an alert.

let service: ServiceProcess
let receiver: Server
let folder: string
/** What the receiver of alerts answers with. */
let receiverStatus = 400

beforeAll(async () => {
  receiver = createServer((request, response) => {
    request.resume()
    response.writeHead(receiverStatus).end()
  })
  await new Promise<void>((resolve) => void receiver.listen(0, '127.0.0.1', resolve))
  folder = await mkdtemp(join(tmpdir(), 'sluice-operator-'))
  const config = join(folder, 'sluice.yaml')
  await writeFile(
    config,
    'service: { alerts: { denial-rate: { threshold: 0, forSeconds: 0, leastSamples: 1, windowSeconds: 60 } } }\n',
  )
  const { port } = receiver.address() as AddressInfo
  service = await startServiceProcess('--config', config, '--alert-webhooks', `http://127.0.0.1:${port}/alerts`)
})

afterAll(async () => {
  await service.close()
  receiver.closeAllConnections()
  await new Promise<void>((resolve) => void receiver.close(() => resolve()))
  await rm(folder, { recursive: true, force: true })
})

async function run(args: readonly string[], options: RunOptions = {}): Promise<RunOutcome> {
  const env = { SLUICE_URL: service.url, SLUICE_API_KEY: service.adminKey }
  return await cliRunner({ ...options, env })(...args)
}

/** Runs a command with --json that is to go well, and gives what it printed. */
async function value<T>(args: readonly string[], options: RunOptions = {}): Promise<T> {
  const outcome = await run([...args, '--json'], options)
  expect([outcome.err, outcome.code]).toEqual(['', 0])
  return outcome.json<T>()
}

/** Runs a command that is to go well, and gives what it printed for people. */
async function text(args: readonly string[], options: RunOptions = {}): Promise<string> {
  const outcome = await run(args, options)
  expect([outcome.err, outcome.code]).toEqual(['', 0])
  return outcome.out
}

async function items<T>(...args: readonly string[]): Promise<readonly T[]> {
  return (await value<{ items: readonly T[] }>(args)).items
}

describe('tiers and their members', () => {
  it('are set from a file, listed, and removed', async () => {
    const files = { 'premium.yaml': 'name: premium\nmultiplier: 3\nburst: 5\n' }
    const put = await value<{ entry: Tier; version: number }>(['tiers', 'put', 'premium.yaml'], { files })
    expect(put).toMatchObject({ entry: { name: 'premium', multiplier: 3 }, version: expect.any(Number) })
    expect(await items<Tier>('tiers', 'list')).toEqual([{ name: 'premium', multiplier: 3, burst: 5 }])
    expect(await text(['tiers', 'list'])).toMatch(/^premium +x 3 +5 +no +0$/m)
    await text(['members', 'put', 'user', 'ada', 'premium', '--expires', '30d'])
    const members = await items<Stored<Membership>>('members', 'list', '--dimension', 'user')
    expect(members).toMatchObject([{ entry: { entity: 'ada', tier: 'premium', expiresAt: expect.any(Number) } }])
    const check = await value<CheckAnswer>(['check', '/tiered', '--user', 'ada'])
    expect(check.limit).toBe(300)
    const stale = await run(['members', 'put', 'user', 'ada', 'premium', '--if-revision', '0', '--json'])
    expect(stale.code).toBe(1)
    expect(await text(['members', 'list', '--entity', 'ada', '--dimension', 'user'])).toContain('premium')
    expect(await value(['members', 'delete', 'user', 'ada'])).toEqual({ deleted: { dimension: 'user', entity: 'ada' } })
    expect(await items('members', 'list')).toEqual([])
    const conflict = await run(['tiers', 'delete', 'premium', '--if-version', String(put.version + 7)])
    expect(conflict.code).toBe(1)
    expect(await text(['tiers', 'delete', 'premium', '--if-version', String(put.version)])).toBe(
      'Deleted the tier premium.\n',
    )
    expect(await text(['tiers', 'list'])).toBe('none\n')
  })

  it('need a file with a name in it', async () => {
    for (const [group, noun] of [
      ['tiers', 'tier'],
      ['exemptions', 'exemption'],
      ['deny-list', 'deny-list entry'],
    ] as const) {
      const outcome = await run([group, 'put', 'x.yaml'], { files: { 'x.yaml': 'multiplier: 2\n' } })
      expect([outcome.code, outcome.out]).toEqual([2, ''])
      expect(outcome.err).toContain(`expected one ${noun}`)
    }
  })
})

describe('exemptions', () => {
  it('are set from a file, listed, and removed', async () => {
    const files = { 'probe.yaml': 'name: probe\nmatch: { resource: /probe, methods: [GET, HEAD] }\n' }
    expect(await text(['exemptions', 'put', 'probe.yaml'], { files })).toMatch(
      /^Set the exemption probe, enforced as version \d+\.$/m,
    )
    const names = (await items<Exemption>('exemptions', 'list')).map(({ name }) => name)
    expect(names.sort()).toEqual(['health', 'healthz', 'livez', 'probe', 'readyz'])
    expect(await text(['exemptions', 'list'])).toMatch(/^probe +0 +resource \/probe methods GET,HEAD$/m)
    expect(await value<CheckAnswer>(['check', '/probe', '--user', 'u', '--method', 'GET'])).toMatchObject({
      reason: 'exempt',
    })
    expect(await value(['exemptions', 'delete', 'probe'])).toEqual({ deleted: { name: 'probe' } })
    expect((await run(['exemptions', 'delete', 'probe'])).code).toBe(1)
  })
})

describe('the deny list', () => {
  it('is set from a file, listed, and cleared', async () => {
    const files = { 'bad.yaml': 'name: bad\nmatch: { cidrs: [192.0.2.0/24] }\nexpiresAt: 2099-01-01\n' }
    await value(['deny-list', 'put', 'bad.yaml'], { files })
    expect(await items<DenyEntry>('deny-list', 'list')).toMatchObject([{ name: 'bad', expiresAt: 4_070_908_800_000 }])
    expect(await text(['deny-list', 'list'])).toMatch(/^bad +2099-01-01T00:00:00Z +cidrs 192\.0\.2\.0\/24$/m)
    const denied = await run(['check', '/x', '--ip', '192.0.2.7', '--json'])
    expect([denied.code, denied.json<CheckAnswer>().allowed]).toEqual([3, false])
    expect(await text(['deny-list', 'delete', 'bad'])).toBe('Deleted the deny-list entry bad.\n')
  })
})

describe('an incident', () => {
  it('is started, shown, and ended', async () => {
    expect(await text(['incident', 'show'])).toBe('Incident mode is off.\n')
    const started = await value<Stored<Incident>>(['incident', 'start', '--until', '30m'])
    expect(started.entry).toMatchObject({ active: true, until: expect.any(Number) })
    expect(await text(['incident', 'show'])).toMatch(
      /^Incident mode is on until 20\d\d-.*: 2 rules use their incident limits\.$/m,
    )
    expect((await value<Stored<Incident>>(['incident', 'end'])).entry).toEqual({ active: false })
    expect(await text(['incident', 'start'])).toContain('until ended by hand')
    await text(['incident', 'end'])
  })

  it('that changes no limit says so, and how to set a factor', async () => {
    const files = { 'plain.yaml': 'rules: [{ resource: "*", dimension: user, limit: 5, window: 1m }]\n' }
    await value(['rules', 'put', 'plain.yaml', '--force'], { files })
    const started = await text(['incident', 'start'])
    expect(started).toMatch(/^Incident mode is on until ended by hand\.\nWARNING: No limit changes: /)
    expect(started).toContain('Set "incident"')
    await text(['incident', 'end'])
    await text(['rules', 'rollback'])
  })
})

describe('the audit log', () => {
  it('is listed, newest first, by who and what', async () => {
    await text(['blocks', 'put', 'user', 'audited', '1h', '--reason', 'a test'])
    const [last] = await items<AuditRecord>('audit', 'list', '--count', '1')
    expect(last).toMatchObject({ action: 'block.put', by: 'first', target: expect.stringContaining('audited') })
    expect(await text(['audit', 'list', '--action', 'block.put'])).toMatch(/first +slk_\w+ +block\.put +.*audited/)
    expect(await items('audit', 'list', '--by', 'stranger')).toEqual([])
    expect(await items('audit', 'list', '--key-id', last!.keyId!, '--count', '1')).toEqual([last])
    expect(await items('audit', 'list', '--key-id', 'slk_other')).toEqual([])
    expect(await items('audit', 'list', '--since', '2099-01-01')).toEqual([])
    expect(await items('audit', 'list', '--count', '0')).toEqual([])
  })
})

describe('alerts', () => {
  it('are listed, acknowledged and silenced; what was not delivered is listed and sent again', async () => {
    await text(['blocks', 'put', 'user', 'denied', '1h'])
    expect((await run(['check', '/x', '--user', 'denied'])).code).toBe(3)
    const poll = { timeout: 30_000, interval: 100 }
    await expect
      .poll(() => items<Alert>('alerts', 'list'), poll)
      .toMatchObject([{ rule: 'denial-rate', state: 'firing' }])
    const [alert] = await items<Alert>('alerts', 'list')
    const id = alert!.id
    expect(await text(['alerts', 'list'])).toContain(`${id}  firing`)
    expect(await value<Alert>(['alerts', 'acknowledge', id, '--note', 'we know'])).toMatchObject({
      acknowledgedBy: 'first',
      acknowledgedNote: 'we know',
    })
    expect(await value<Alert>(['alerts', 'silence', id, '1h'])).toMatchObject({ silencedUntil: expect.any(Number) })
    expect((await run(['alerts', 'silence', id, 'long'])).code).toBe(2)
    expect((await run(['alerts', 'acknowledge', 'nothing'])).code).toBe(1)
    await expect.poll(async () => (await items<DeadLetter>('alerts', 'dead-letters')).length, poll).toBe(1)
    const [letter] = await items<DeadLetter>('alerts', 'dead-letters')
    expect(letter).toMatchObject({ alertId: id, error: 'answered with status 400' })
    expect(await text(['alerts', 'dead-letters'])).toContain('answered with status 400')
    receiverStatus = 204
    expect(await value(['alerts', 'retry', letter!.id])).toEqual({ retried: { id: letter!.id } })
    await expect.poll(() => items('alerts', 'dead-letters'), poll).toEqual([])
    expect((await run(['alerts', 'retry', letter!.id])).code).toBe(1)
  })
})

describe('decisions', () => {
  it('are listed with filters, and explained', async () => {
    await text(['blocks', 'put', 'user', 'watched', '1h'])
    expect((await run(['check', '/x', '--user', 'watched'])).code).toBe(3)
    const listed = await items<DecisionRecord>('decisions', 'list', '--outcome', 'denied', '--caller', 'watched')
    expect(listed).toMatchObject([{ resource: '/x', allowed: false, reason: 'blocked' }])
    expect(await text(['decisions', 'list', '--caller', 'watched'])).toMatch(/denied: blocked +\/x +user:watched/)
    expect(await items('decisions', 'list', '--caller', 'watched', '--outcome', 'allowed')).toEqual([])
    expect(await items('decisions', 'list', '--count', '0')).toEqual([])
    expect(await text(['decisions', 'explain', listed[0]!.id])).toMatch(/^It was denied \(blocked\) at 20\d\d-/)
    expect((await run(['decisions', 'explain', 'nothing'])).code).toBe(1)
    expect((await run(['decisions', 'list', '--outcome', 'none'])).code).toBe(2)
  })
})

describe('nodes', () => {
  it('are listed', async () => {
    expect(await text(['nodes', 'list'])).toMatch(/\(asked\) +running +- +version \d+ .* memory /)
    const { nodes } = await value<NodesAnswer>(['nodes', 'list'])
    expect(nodes).toMatchObject([{ isSelf: true, isLost: false, store: 'memory' }])
  })
})

describe('sessions', () => {
  it('are listed and ended', async () => {
    const signedIn = await fetch(`${service.url}/auth/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' },
      body: JSON.stringify({ apiKey: service.adminKey }),
    })
    const cookie = signedIn.headers.getSetCookie()[0]!.split(';', 1)[0]!
    const isSignedIn = async (): Promise<boolean> => {
      const response = await fetch(`${service.url}/auth/session`, { headers: { cookie } })
      return ((await response.json()) as SessionState).isSignedIn
    }
    expect(await isSignedIn()).toBe(true)
    const [session] = await items<Session>('sessions', 'list')
    expect(session).toMatchObject({ name: 'first', role: 'admin' })
    expect(await items<Session>('sessions', 'list', '--all')).toEqual([session])
    expect(await text(['sessions', 'end', session!.id])).toBe(`Ended session ${session!.id}.\n`)
    expect([await isSignedIn(), await items('sessions', 'list')]).toEqual([false, []])
  })
})

describe('reset', () => {
  it('gives back some units', async () => {
    const files = { 'few.yaml': 'rules: [{ resource: /few, dimension: user, limit: 3, window: 1d }]\n' }
    await value(['rules', 'put', 'few.yaml', '--force'], { files })
    const check = async (): Promise<number> => (await run(['check', '/few', '--user', 'ann'])).code
    expect([await check(), await check(), await check(), await check()]).toEqual([0, 0, 0, 3])
    expect(await text(['reset', '/few', '--user', 'ann', '--units', '2'])).toBe(
      'Gave 2 units back to user:ann on /few, under 1 rule.\n',
    )
    expect([await check(), await check(), await check()]).toEqual([0, 0, 3])
    await text(['rules', 'rollback'])
  })
})

describe('a key that may only look', () => {
  it('is rejected with 5 where something is changed', async () => {
    const { token } = await value<{ token: string }>(['keys', 'create', 'viewer', '--role', 'viewer'])
    const look = async (...args: string[]): Promise<number> => (await run([...args, '--key', token])).code
    expect(await look('tiers', 'list')).toBe(0)
    expect(await look('audit', 'list')).toBe(0)
    expect(await look('incident', 'start')).toBe(5)
    expect(await look('alerts', 'acknowledge', 'x')).toBe(5)
    expect(await look('deny-list', 'delete', 'x')).toBe(5)
  })
})
