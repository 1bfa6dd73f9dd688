import type { ChildProcess } from 'node:child_process'
import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, startPostgres, startRedis } from '@sluice/testing/servers'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { RawConnection, rawCheck, startService } from './service.fixture.ts'

// The process as a user starts it.

const BODY = '{"userId":"user-123","resource":"/api/v1/data"}'

/** A child process and what it has printed so far. */
class Running {
  readonly child: ChildProcess
  readonly exit: Promise<[code: number | null, signal: NodeJS.Signals | null]>
  output = ''
  #notify = (): void => undefined

  constructor(command: string, args: readonly string[], options: { env?: Record<string, string>; cwd?: string } = {}) {
    this.child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options })
    this.exit = once(this.child, 'close') as typeof this.exit
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output += text
        this.#notify()
      })
    }
    this.child.on('close', () => this.#notify())
    onTestFinished(async () => {
      this.child.kill('SIGKILL')
      await this.exit
    })
  }

  /** Waits until the output matches, and gives the match. */
  async printed(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.output)
      if (found !== null) return found
      if (this.child.exitCode !== null) throw new Error(`It ended with ${this.child.exitCode}: ${this.output}`)
      await new Promise<void>((resolve) => {
        this.#notify = resolve
      })
    }
  }
}

function freshFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-main-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function startMain(env: Record<string, string> = {}, args: readonly string[] = []): Running {
  const main = `${import.meta.dirname}/main.ts`
  const defaults = { PORT: '0', SLUICE_DATA_DIR: env['SLUICE_DATA_DIR'] ?? freshFolder(), SLUICE_DRAIN_MS: '0' }
  return new Running(process.execPath, ['--conditions=source', main, ...args], { env: { ...defaults, ...env } })
}

/** Starts it in a folder as a user does who sets nothing: its data goes to `.sluice` there. */
function startIn(cwd: string, env: Record<string, string>, args: readonly string[] = []): Running {
  const main = `${import.meta.dirname}/main.ts`
  return new Running(process.execPath, ['--conditions=source', main, ...args], { env, cwd })
}

const CURL_LINE = /^ {2}(curl -i .*)\n/m
/** The last line. */
const DENIED_LINE = /^ {2}(curl -s .*)\n/m
const PORT_PRINTED = /http:\/\/127\.0\.0\.1:(\d+)\/readyz/

async function portOf(service: Running): Promise<number> {
  return Number((await service.printed(PORT_PRINTED))[1])
}

/** All of the output: the code and what it means, one line for each of `problems` problems, and what to do. */
function oneError(code: string, problems = 1): RegExp {
  return new RegExp(
    `^${code}: [^\\n]{1,60}\\.\\n(?:  [^\\n]*received [^\\n]+; expected [^\\n]+\\n){${problems}}[^{}\\n]+\\n$`,
  )
}

/** What a user sees who pastes the line. Without curl on the machine, the same requests are sent by hand. */
async function paste(line: string): Promise<string> {
  const shell = new Running('sh', ['-c', line])
  const [code] = await shell.exit
  if (code !== 127) return shell.output
  const [, type = '', body = ''] = / -H '([^']+)' -d '([^']+)'$/.exec(line) ?? []
  const answers = (line.match(/http:\S+/g) ?? []).map(async (url) => {
    const response = await fetch(url, { method: 'POST', headers: [type.split(': ') as [string, string]], body })
    const text = await response.text()
    return line.includes(' -i ') ? `HTTP/1.1 ${response.status} ${text}` : `${text}${response.status}\n`
  })
  return (await Promise.all(answers)).join('')
}

describe('the process', () => {
  it('prints commands to try: a call that is allowed, and one that is denied', async () => {
    const service = startMain()
    const [, line = ''] = await service.printed(CURL_LINE)
    const output = await paste(line)
    expect(output).toContain('HTTP/1.1 200')
    expect(output).toContain('"allowed":true')
    expect(output).toContain('"remaining":99')
    // The prompt of a terminal comes on a line of its own.
    expect(output).toMatch(/\}\n$/)
    const calls = await paste((await service.printed(DENIED_LINE))[1]!)
    const [allowed = '', first, denied = '', second] = calls.split('\n')
    expect([first, second]).toEqual(['200', '429'])
    expect(JSON.parse(allowed)).toMatchObject({ allowed: true, remaining: 39 })
    expect(JSON.parse(denied)).toMatchObject({ allowed: false, reason: 'limit', rule: 'default-user' })
  })

  it('prints nothing but the message', async () => {
    const service = startMain()
    await service.printed(DENIED_LINE)
    expect(service.output.split('\n').map((line) => line.trim().split(/\s{2,}| is | -i /)[0])).toEqual([
      'Admin API key (shown once, save it now):',
      expect.stringMatching(/^slk_\w+_\w+$/),
      'Sluice',
      'dashboard',
      'check API',
      'admin API',
      'OpenAPI',
      'metrics',
      'health',
      'counters',
      'rules',
      'listening',
      'Try it:',
      'curl',
      'Try a denial, the second of these two calls:',
      expect.stringMatching(/^curl -s -w /),
      '',
    ])
  })

  it('sends the key and its URL to a parent with an IPC channel', async () => {
    const folder = freshFolder()
    const messages = async (): Promise<readonly unknown[]> => {
      const received: unknown[] = []
      const args = ['--port', '0', '--data-dir', folder, '--drain-ms', '0']
      const child = fork(`${import.meta.dirname}/main.ts`, args, { execArgv: ['--conditions=source'], silent: true })
      const exit = once(child, 'close')
      child.on('message', (message: { readonly event: string }) => {
        received.push(message)
        if (message.event === 'started') child.kill('SIGTERM')
      })
      expect(await exit).toEqual([0, null])
      return received
    }
    const started = { event: 'started', url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/) }
    const firstKey = { event: 'firstKey', firstKey: expect.stringMatching(/^slk_\w+_\w+$/) }
    expect(await messages()).toEqual([firstKey, started])
    expect(await messages()).toEqual([started])
  })

  it.each(['SIGTERM', 'SIGINT'] as const)('ends with 0 on %s, idle connections or not', async (signal) => {
    const service = startMain()
    const connection = new RawConnection(await portOf(service))
    connection.send(rawCheck(BODY))
    await connection.until('"allowed":true')
    service.child.kill(signal)
    expect(await service.exit).toEqual([0, null])
    await connection.end()
  })

  it('answers what it has begun before it ends', async () => {
    const service = startMain()
    const connection = new RawConnection(await portOf(service))
    const bytes = rawCheck(BODY, 'Expect: 100-continue\r\n')
    connection.send(bytes.slice(0, -5))
    await connection.until('100 Continue')
    service.child.kill('SIGTERM')
    await service.printed(/^Shutting down: /m)
    connection.send(bytes.slice(-5))
    expect(await connection.end()).toContain('"allowed":true')
    expect(await service.exit).toEqual([0, null])
  })

  it('ends at once on a second signal', async () => {
    const service = startMain()
    const connection = new RawConnection(await portOf(service))
    connection.send(rawCheck(BODY, 'Expect: 100-continue\r\n').slice(0, -5))
    await connection.until('100 Continue')
    service.child.kill('SIGTERM')
    await service.printed(/^Shutting down: /m)
    service.child.kill('SIGINT')
    expect(await service.exit).toEqual([130, null])
    await connection.end()
  })
})

describe('the flags', () => {
  it('are listed by --help, and nothing runs', async () => {
    const service = startMain({}, ['--port', 'x', '--help'])
    expect(await service.exit).toEqual([0, null])
    expect(service.output).toContain('--redis-url <url,...>')
    expect(service.output).not.toContain('Sluice is running')
  })

  it('go before the environment', async () => {
    const service = startMain({ SLUICE_THREADS: 'no number', HOST: '127.0.0.9' }, [
      '--threads',
      '1',
      '--host=127.0.0.1',
    ])
    // A problem is reported although a flag has precedence.
    expect(await service.exit).toEqual([1, null])
    expect(service.output).toContain('SLUICE_THREADS="no number"')
    await portOf(startMain({ HOST: '127.0.0.9' }, ['--host=127.0.0.1']))
  })
})

describe('the data folder', () => {
  it('has what is needed to go on: the key and the rules of the first start hold after the second', async () => {
    const folder = freshFolder()
    const first = startMain({ SLUICE_DATA_DIR: folder })
    const [key] = await first.printed(/slk_\w+_\w+/)
    await portOf(first)
    first.child.kill('SIGTERM')
    expect(await first.exit).toEqual([0, null])
    const second = startMain({ SLUICE_DATA_DIR: folder })
    const port = await portOf(second)
    const url = `http://127.0.0.1:${port}/admin/ratelimits`
    expect((await fetch(url, { headers: { Authorization: `Bearer ${key}` } })).status).toBe(200)
    expect((await fetch(url)).status).toBe(401)
    expect(second.output).not.toContain('slk_')
  })

  it('is used by one process: a second start says so, and leaves the first alone', async () => {
    const folder = freshFolder()
    const first = startMain({ SLUICE_DATA_DIR: folder })
    const port = await portOf(first)
    const second = startMain({ SLUICE_DATA_DIR: folder })
    expect(await second.exit).toEqual([1, null])
    expect(second.output).toContain(`process ${first.child.pid}`)
    expect(second.output).toMatch(oneError('SLUICE_SERVICE_DATA_DIR_IN_USE'))
    expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200)
  })

  it('is free again after a process that was killed', async () => {
    const folder = freshFolder()
    const first = startMain({ SLUICE_DATA_DIR: folder })
    await portOf(first)
    first.child.kill('SIGKILL')
    await first.exit
    await portOf(startMain({ SLUICE_DATA_DIR: folder }))
  })
})

describe('a service that other machines can reach', () => {
  it.each([
    [[], 401, /^ {2}listening {3}0\.0\.0\.0; the check API needs an API key \(/m],
    [['--no-check-key'], 200, /^ {2}listening {3}0\.0\.0\.0; the check API needs no API key \(/m],
  ])('with %j answers a check without a key with %s, and prints that', async (args, status, listening) => {
    const service = startMain({ HOST: '0.0.0.0' }, args)
    const [, key] = await service.printed(/^ {2}(slk_\w+)$/m)
    const port = await portOf(service)
    await service.printed(listening)
    const url = `http://127.0.0.1:${port}/internal/ratelimit/check`
    const headers = { 'Content-Type': 'application/json' }
    expect((await fetch(url, { method: 'POST', headers, body: BODY })).status).toBe(status)
    const withKey = { ...headers, Authorization: `Bearer ${key}` }
    expect((await fetch(url, { method: 'POST', headers: withKey, body: BODY })).status).toBe(200)
  })
})

describe('the files of the process', () => {
  it('are for its user alone, in a folder that was there', async () => {
    const folder = freshFolder()
    chmodSync(folder, 0o755)
    writeFileSync(join(folder, 'config.db'), '')
    chmodSync(join(folder, 'config.db'), 0o644)
    const service = startMain({ SLUICE_DATA_DIR: folder, SLUICE_THREADS: '2' })
    const port = await portOf(service)
    expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200)
    const names = readdirSync(folder)
    expect(names).toEqual(expect.arrayContaining(['config.db', 'config.db-wal', 'config.db-shm', 'lock']))
    expect(names.map((name) => [name, modeOf(join(folder, name))])).toEqual(names.map((name) => [name, 0o600]))
  })
})

function modeOf(path: string): number {
  return statSync(path).mode & 0o777
}

const TOKEN = `slk_${'a1B2'.repeat(3)}_${'x'.repeat(43)}`

describe('--admin-key-file', () => {
  async function adminStatus(port: number, key: string): Promise<number> {
    const headers = { Authorization: `Bearer ${key.trim()}` }
    return (await fetch(`http://127.0.0.1:${port}/admin/api-keys`, { headers })).status
  }

  it('has the first key written to it, for this user alone, and not printed', async () => {
    const [folder, secrets] = [freshFolder(), freshFolder()]
    const file = join(secrets, 'admin-key')
    const service = startMain({ SLUICE_DATA_DIR: folder }, ['--admin-key-file', file])
    const port = await portOf(service)
    const key = readFileSync(file, 'utf8')
    expect([key, modeOf(file)]).toEqual([expect.stringMatching(/^slk_\w{12}_\w{43}\n$/), 0o600])
    expect(await adminStatus(port, key)).toBe(200)
    expect(service.output).toContain(`is in ${file}.`)
    expect(service.output).not.toContain('slk_')
    service.child.kill('SIGTERM')
    await service.exit
    // The file is not needed any more, and is not written again.
    rmSync(file)
    const later = startMain({ SLUICE_DATA_DIR: folder }, ['--admin-key-file', file])
    expect(await adminStatus(await portOf(later), key)).toBe(200)
    expect(readdirSync(secrets)).toEqual([])
    expect(later.output).not.toContain('slk_')
  })

  it('has the first key read from it, on every node', async () => {
    const postgres = await startPostgres()
    onTestFinished(() => postgres.close())
    const file = join(freshFolder(), 'admin-key')
    writeFileSync(file, TOKEN)
    const env = { DATABASE_URL: postgres.url, SLUICE_ADMIN_KEY_FILE: file }
    const nodes = [startMain(env), startMain(env)]
    for (const node of nodes) {
      const port = await portOf(node)
      await vi.waitUntil(async () => (await adminStatus(port, TOKEN)) === 200, 30_000)
      expect(node.output).not.toContain('slk_')
    }
    expect(await postgres.query('SELECT count(*) FROM api_keys')).toContain('1')
    expect(readFileSync(file, 'utf8')).toBe(TOKEN)
  })

  it('with another key than those there are changes nothing, and is warned of', async () => {
    const folder = freshFolder()
    const first = startMain({ SLUICE_DATA_DIR: folder })
    await portOf(first)
    first.child.kill('SIGTERM')
    await first.exit
    const file = join(freshFolder(), 'admin-key')
    writeFileSync(file, TOKEN)
    const later = startMain({ SLUICE_DATA_DIR: folder, SLUICE_ADMIN_KEY_FILE: file })
    expect(await adminStatus(await portOf(later), TOKEN)).toBe(401)
    await later.printed(/"the key in the admin key file is not valid: there are other API keys already"/)
  })

  it.each([
    ['holds something else', (file: string) => writeFileSync(file, 'hunter2')],
    ['cannot be read', (file: string) => mkdirSync(file)],
  ])('that %s ends the start before anything is written', async (problem, prepare) => {
    const [folder, secrets] = [freshFolder(), freshFolder()]
    const file = join(secrets, 'admin-key')
    prepare(file)
    const service = startMain({ SLUICE_DATA_DIR: join(folder, 'data') }, ['--admin-key-file', file])
    expect(await service.exit).toEqual([1, null])
    expect(service.output).toContain('SLUICE_SERVICE_ADMIN_KEY_FILE_UNUSABLE')
    expect(service.output).toContain(problem)
    expect(service.output).not.toContain('hunter2')
    expect(readdirSync(folder)).toEqual([])
  })

  it('that cannot be written ends the start, and no key is made', async () => {
    const folder = freshFolder()
    const env = { SLUICE_DATA_DIR: join(folder, 'data') }
    const service = startMain(env, ['--admin-key-file', join(folder, 'missing', 'admin-key')])
    expect(await service.exit).toEqual([1, null])
    expect(service.output).toContain('SLUICE_SERVICE_ADMIN_KEY_FILE_UNUSABLE')
    expect(service.output).not.toMatch(/slk_\w{12}_|tried again/)
    expect(readdirSync(folder)).toEqual([])
  })
})

describe('--new-admin-key', () => {
  it('makes another admin key in the database of a service that runs, and ends', async () => {
    const folder = freshFolder()
    const service = startMain({ SLUICE_DATA_DIR: folder })
    const port = await portOf(service)
    const recovery = startMain({ SLUICE_DATA_DIR: folder }, ['--new-admin-key'])
    expect(await recovery.exit).toEqual([0, null])
    const [key] = await recovery.printed(/slk_\w{12}_\w{43}/)
    expect(recovery.output).not.toContain('Sluice is running')
    const headers = { Authorization: `Bearer ${key}` }
    const audit = `http://127.0.0.1:${port}/admin/audit`
    await vi.waitUntil(async () => (await fetch(audit, { headers })).status === 200, 30_000)
    expect(await (await fetch(audit, { headers })).text()).toContain('"by":"key recovery"')
  })

  it('makes the key of a file valid, and writes one that is missing', async () => {
    const folder = freshFolder()
    const service = startMain({ SLUICE_DATA_DIR: folder })
    const port = await portOf(service)
    const secrets = freshFolder()
    writeFileSync(join(secrets, 'given'), TOKEN)
    for (const name of ['given', 'given', 'written']) {
      const args = ['--new-admin-key', '--admin-key-file', join(secrets, name)]
      const recovery = startMain({ SLUICE_DATA_DIR: folder }, args)
      expect(await recovery.exit).toEqual([0, null])
      expect(recovery.output).toContain(`is in ${join(secrets, name)}.`)
      expect(recovery.output).not.toContain('slk_')
      const headers = { Authorization: `Bearer ${readFileSync(join(secrets, name), 'utf8').trim()}` }
      const url = `http://127.0.0.1:${port}/admin/api-keys`
      await vi.waitUntil(async () => (await fetch(url, { headers })).status === 200, 30_000)
    }
  })

  it('makes no database where there is none', async () => {
    const folder = freshFolder()
    const recovery = startMain({ SLUICE_DATA_DIR: join(folder, 'data') }, ['--new-admin-key'])
    expect(await recovery.exit).toEqual([1, null])
    expect(recovery.output).toContain('which has no config.db')
    expect(readdirSync(folder)).toEqual([])
  })
})

describe('Redis and PostgreSQL', () => {
  it('take two variables: counters and configuration are there then, and nothing else changes', async () => {
    const [redis, postgres] = await Promise.all([startRedis(), startPostgres()])
    onTestFinished(() => redis.close())
    onTestFinished(() => postgres.close())
    const service = startMain({ REDIS_URL: redis.url, DATABASE_URL: postgres.url })
    const port = await portOf(service)
    const [key] = await service.printed(/slk_\w+_\w+/)
    expect(service.output).toContain(`in Redis at redis://127.0.0.1:${redis.port}`)
    expect(service.output).toContain(`from postgres://127.0.0.1:${postgres.port}/`)
    const [, line = ''] = await service.printed(CURL_LINE)
    expect(await paste(line)).toContain('"remaining":99')
    const headers = { Authorization: `Bearer ${key}` }
    expect((await fetch(`http://127.0.0.1:${port}/admin/ratelimits`, { headers })).status).toBe(200)
    expect(await redis.command('DBSIZE')).not.toBe(0)
    expect(await postgres.query('SELECT count(*) FROM api_keys')).toContain('1')
    service.child.kill('SIGTERM')
    expect(await service.exit).toEqual([0, null])
  })
})

describe('a wrong REDIS_URL', () => {
  it.each(['1', '2'])('is warned of at the start, with what it means (%s threads)', async (threads) => {
    const port = await freePort()
    const env = { REDIS_URL: `redis://:hunter2@127.0.0.1:${port}`, SLUICE_THREADS: threads }
    const service = startMain(env)
    await service.printed(CURL_LINE)
    const warnings = service.output.split('\n').filter((line) => line.startsWith('  WARNING'))
    expect(warnings).toEqual([
      expect.stringMatching(
        `Redis at redis://127\\.0\\.0\\.1:${port} is unreachable\\. Failure mode "open" .+: every check is allowed\\.`,
      ),
    ])
    expect(service.output).not.toContain('hunter2')
  })
})

describe('several threads', () => {
  it('answer on one port, and stop with the process', async () => {
    const service = startMain({ SLUICE_THREADS: '2' })
    const port = await portOf(service)
    expect(service.output).toContain('shared by 2 threads')
    const ready = await fetch(`http://127.0.0.1:${port}/readyz`)
    expect(await ready.json()).toMatchObject({
      checks: expect.arrayContaining([{ name: 'threads', ready: true, detail: '2 of 2 running' }]),
    })
    service.child.kill('SIGTERM')
    expect(await service.exit).toEqual([0, null])
  })

  it('do not share a port with another process', async () => {
    const port = await portOf(startMain({ SLUICE_THREADS: '2' }))
    const second = startMain({ SLUICE_THREADS: '2', PORT: String(port) })
    expect(await second.exit).toEqual([1, null])
    expect(second.output).toMatch(oneError('SLUICE_SERVICE_PORT_IN_USE'))
  })
})

describe('a start that fails', () => {
  it.each(['1', '2'])('lists once what is wrong with the rules file, line by line (%s threads)', async (threads) => {
    const file = join(freshFolder(), 'sluice.yaml')
    writeFileSync(file, 'rules:\n  - { resource: "*", dimension: user, limit: many,\n      window: soon }\n')
    const service = startMain({ SLUICE_THREADS: threads }, ['--config', file])
    expect(await service.exit).toEqual([1, null])
    expect(service.output).toMatch(oneError('SLUICE_INVALID_RULE_SET', 2))
    expect(service.output).toContain('  /rules/0/limit (line 2): received "many"; expected ')
    expect(service.output).toContain('  /rules/0/window (line 3): received "soon"; expected ')
  })

  it('rejects rules whose state has no room in shared memory, instead of failing every check', async () => {
    const file = join(freshFolder(), 'sluice.yaml')
    const rule = { resource: '*', dimension: 'user', algorithm: 'sliding-window-log', limit: 5000, window: '1m' }
    writeFileSync(file, JSON.stringify({ rules: [rule] }))
    const service = startMain({ SLUICE_THREADS: '2', SLUICE_STATE_SIZE: '64' }, ['--config', file])
    expect(await service.exit).toEqual([1, null])
    expect(service.output).toMatch(oneError('SLUICE_INVALID_RULE_SET'))
    expect(service.output).toContain('--state-size')
  })

  it('names the port that is taken, and another', async () => {
    const other = await startService()
    onTestFinished(() => other.stop())
    const service = startMain({ PORT: String(other.port) })
    expect(await service.exit).toEqual([1, null])
    expect(service.output).toContain(`port ${other.port} on 127.0.0.1`)
    expect(service.output).toContain(`PORT=${other.port + 1}`)
    expect(service.output).toMatch(oneError('SLUICE_SERVICE_PORT_IN_USE'))
  })

  it.each(['1', '2'])(
    'makes no key and leaves no folder behind when the port is taken (%s threads)',
    async (threads) => {
      const [other, cwd] = [await startService(), freshFolder()]
      onTestFinished(() => other.stop())
      const env = { PORT: String(other.port), SLUICE_THREADS: threads }
      const failing = startIn(cwd, env)
      expect(await failing.exit).toEqual([1, null])
      expect(failing.output).toMatch(oneError('SLUICE_SERVICE_PORT_IN_USE'))
      expect(readdirSync(cwd)).toEqual([])
      // The next start is still the first.
      const started = startIn(cwd, { ...env, PORT: '0' })
      const port = await portOf(started)
      const [key] = await started.printed(/slk_\w+_\w+/)
      const headers = { Authorization: `Bearer ${key}` }
      expect((await fetch(`http://127.0.0.1:${port}/admin/api-keys`, { headers })).status).toBe(200)
      expect(readdirSync(cwd)).toEqual(['.sluice'])
    },
  )

  it('makes no key in a shared database when the port is taken', async () => {
    const [other, postgres] = [await startService(), await startPostgres()]
    onTestFinished(() => other.stop())
    onTestFinished(() => postgres.close())
    const env = { DATABASE_URL: postgres.url }
    const failing = startMain({ ...env, PORT: String(other.port) })
    expect(await failing.exit).toEqual([1, null])
    expect(failing.output).toMatch(oneError('SLUICE_SERVICE_PORT_IN_USE'))
    await startMain(env).printed(/slk_\w+_\w+/)
  })

  it('leaves no folder behind when it fails later, and one that was there as it was', async () => {
    const cwd = freshFolder()
    // Webhooks are opened when the folder has been made and locked.
    const args = ['--alert-webhooks', 'http://169.254.169.254/', '--data-dir', 'data/of/sluice', '--port', '0']
    const failing = startIn(cwd, {}, args)
    expect(await failing.exit).toEqual([1, null])
    expect(failing.output).toContain('SLUICE_SERVICE_INVALID_SETTING')
    expect(failing.output).not.toContain('slk_')
    expect(readdirSync(cwd)).toEqual([])
    mkdirSync(join(cwd, 'data/of/sluice'), { recursive: true })
    writeFileSync(join(cwd, 'data/of/sluice/mine'), '')
    expect(await startIn(cwd, {}, args).exit).toEqual([1, null])
    expect(readdirSync(join(cwd, 'data/of/sluice'))).toContain('mine')
  })

  it('names every setting that cannot be used', async () => {
    const service = startMain({ PORT: 'http', HOST: '*' })
    expect(await service.exit).toEqual([1, null])
    expect(service.output).toMatch(oneError('SLUICE_SERVICE_INVALID_SETTING', 2))
    expect(service.output).toContain('  received HOST="*"; expected HOST to be ')
    expect(service.output).toContain('  received PORT="http"; expected PORT to be ')
  })
})
