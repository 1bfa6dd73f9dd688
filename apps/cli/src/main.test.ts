import type { ChildProcessByStdio } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { freePort, makeCertificate } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { ServiceProcess } from './service-process.test.support.ts'
import { startServiceProcess } from './service-process.test.support.ts'

// The command as a process, as a shell starts it.

interface Running {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>
  /** What it printed so far. */
  readonly printed: { out: string; err: string }
  /** Resolves with its exit code when it has ended. */
  readonly ended: Promise<number | null>
  /** Resolves when it has printed what matches. */
  printedMatch(pattern: RegExp): Promise<void>
}

function start(args: readonly string[], env: Readonly<Record<string, string>> = {}, program = mainFile()): Running {
  const child = spawn(
    process.execPath,
    ['--conditions=source', '--disable-warning=ExperimentalWarning', program, ...args],
    {
      stdio: ['pipe', 'pipe', 'pipe'],
      env,
    },
  )
  const printed = { out: '', err: '' }
  const changes = new Set<() => void>()
  const listen = (stream: Readable, name: 'out' | 'err'): void => {
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed[name] += text
      for (const change of changes) change()
    })
  }
  listen(child.stdout, 'out')
  listen(child.stderr, 'err')
  const ended = once(child, 'close').then(([code]) => {
    for (const change of changes) change()
    return code as number | null
  })
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  return {
    child,
    printed,
    ended,
    printedMatch: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (pattern.test(printed.out)) resolve()
          else if (child.exitCode !== null)
            reject(new Error(`It ended with ${child.exitCode}: ${JSON.stringify(printed)}`))
        }
        changes.add(look)
        look()
      }),
  }
}

function mainFile(): string {
  return join(import.meta.dirname, 'main.ts')
}

async function run(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly code: number | null; readonly out: string; readonly err: string }> {
  const { ended, printed, child } = start(args, env)
  child.stdin.end()
  const code = await ended
  return { code, ...printed }
}

describe('the process', () => {
  let service: ServiceProcess
  let env: Readonly<Record<string, string>>

  beforeAll(async () => {
    service = await startServiceProcess()
    env = { SLUICE_URL: service.url, SLUICE_API_KEY: service.adminKey }
  })

  afterAll(() => service.close())

  it('ends with the exit codes that are documented', async () => {
    const rule = JSON.stringify({ resource: '/once', rules: [{ dimension: 'user', limit: 1, window: '1h' }] })
    const put = start(['rules', 'put', '-'], env)
    put.child.stdin.end(rule)
    expect([await put.ended, put.printed.err]).toEqual([0, ''])
    const check = ['check', '/once', '--user', 'u', '--json']
    const codes = [
      await run(check, env),
      await run(['rules', 'get', '/none'], env),
      await run(['check'], env),
      await run(check, env),
      await run([...check, '--url', `http://127.0.0.1:${await freePort()}`], env),
      await run(['keys', 'list'], { ...env, SLUICE_API_KEY: 'slk_4f9d1c_notavalidsecret' }),
    ]
    expect(codes.map(({ code }) => code)).toEqual([0, 1, 2, 3, 4, 5])
    expect(JSON.parse(codes[3]!.out)).toMatchObject({ allowed: false })
    expect(codes.map(({ out, err }) => out + err).join('')).not.toContain('notavalidsecret')
  })

  it('reads a file by its path, and says when it cannot', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-cli-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const path = join(folder, 'rule.yaml')
    await writeFile(path, 'resource: /file\nrules: [{ dimension: user, limit: 3, window: 1h }]\n')
    expect(await run(['rules', 'put', path], env)).toMatchObject({ code: 0 })
    const missing = await run(['rules', 'put', join(folder, 'none.yaml')], env)
    expect([missing.code, missing.err]).toEqual([2, expect.stringContaining('none.yaml: it cannot be read (ENOENT')])
  })

  it('ends without an error when its output is closed', async () => {
    const { child, ended, printed } = start(['top'], env)
    child.stdout.once('data', () => child.stdout.destroy())
    expect([await ended, printed.err]).toEqual([0, ''])
  })

  it('ends with 0 when top is interrupted', async () => {
    const { child, ended, printedMatch, printed } = start(['top', '--json'], env)
    await printedMatch(/\n/)
    child.kill('SIGINT')
    expect([await ended, printed.err]).toEqual([0, ''])
  })
})

it('ends with 130 when it is interrupted, whatever is still in progress', async () => {
  const server = createServer()
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => void server.close(resolve))
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { child, ended, printed } = start(['check', '/x', '--url', url, '--timeout', '1h'])
  server.once('request', () => child.kill('SIGINT'))
  expect([await ended, printed]).toEqual([130, { out: '', err: '' }])
})

describe('serve', () => {
  async function folder(): Promise<string> {
    const path = await mkdtemp(join(tmpdir(), 'sluice-cli-'))
    onTestFinished(() => rm(path, { recursive: true, force: true }))
    return path
  }

  it('starts the service with the flags that it was given, and stops it', async () => {
    const flags = ['--port', '0', '--data-dir', await folder(), '--drain-ms', '0']
    const { child, ended, printed, printedMatch } = start(['serve', '--json', ...flags])
    await printedMatch(/\n/)
    const started = JSON.parse(printed.out) as { event: string; url: string; pid: number; firstKey: string }
    expect(started).toMatchObject({ event: 'started', firstKey: expect.stringMatching(/^slk_\w+$/) })
    expect(started.pid).not.toBe(child.pid)
    const env = { SLUICE_URL: started.url, SLUICE_API_KEY: started.firstKey }
    expect(await run(['rules', 'list'], env)).toMatchObject({ code: 0 })
    child.kill('SIGTERM')
    expect(await ended).toBe(0)
    expect(JSON.parse(printed.out.split('\n')[1]!)).toEqual({ event: 'stopped', code: 0 })
    // The second start has a key already.
    const second = start(['serve', '--json', ...flags])
    await second.printedMatch(/\n/)
    expect(JSON.parse(second.printed.out)).toMatchObject({ firstKey: null })
    second.child.kill('SIGINT')
    expect(await second.ended).toBe(0)
    // A killed program has another exit code than one that ends.
    const third = start(['serve', '--json', ...flags])
    await third.printedMatch(/\n/)
    process.kill((JSON.parse(third.printed.out) as { pid: number }).pid, 'SIGKILL')
    expect(await third.ended).toBe(137)
  })

  it('serves HTTPS and an admin API with a port of its own, for commands that trust its certificate', async () => {
    const path = await folder()
    const { certificateFile: cert, keyFile: key } = await makeCertificate(path)
    const tls = ['--http-tls-cert', cert, '--http-tls-key', key]
    const flags = ['--port', '0', '--admin-port', '0', '--data-dir', join(path, 'data'), '--drain-ms', '0', ...tls]
    const { child, ended, printed, printedMatch } = start(['serve', '--json', ...flags])
    await printedMatch(/\n/)
    const started = JSON.parse(printed.out) as Readonly<Record<'url' | 'adminUrl' | 'firstKey', string>>
    expect(started.url).toMatch(/^https:/)
    const env = { SLUICE_URL: started.adminUrl, SLUICE_API_KEY: started.firstKey, NODE_EXTRA_CA_CERTS: cert }
    expect(await run(['rules', 'list'], env)).toMatchObject({ code: 0 })
    expect((await run(['doctor', '--data-dir', join(path, 'data')], env)).out).toMatch(/^ok +api key/m)
    const elsewhere = await run(['rules', 'list'], { ...env, SLUICE_URL: started.url })
    expect(elsewhere.err).toContain('The admin API and metrics have a listener of their own')
    const doctor = await run(['doctor', '--data-dir', join(path, 'data')], { ...env, SLUICE_URL: started.url })
    expect(doctor.out).toMatch(/^warning +api key +not checked: the admin API has another address/m)
    const { NODE_EXTRA_CA_CERTS: _, ...untrusting } = env
    expect((await run(['rules', 'list'], untrusting)).err).toContain('NODE_EXTRA_CA_CERTS')
    expect((await run(['doctor'], untrusting)).out).toMatch(
      /^warning +service .*\n +-> Its certificate is not trusted/m,
    )
    child.kill('SIGTERM')
    expect(await ended).toBe(0)
  })

  it('ends as the service does, with what it says', async () => {
    const outcome = await run(['serve', '--port', 'http'])
    expect(outcome.code).toBe(1)
    expect(outcome.err).toContain('SLUICE_SERVICE_INVALID_SETTING')
    const told = await run(['serve', '--json', '--port', 'http'])
    expect(JSON.parse(told.err)).toMatchObject({ error: { code: 'SLUICE_SERVICE_INVALID_SETTING' }, exitCode: 1 })
    expect(JSON.parse(told.out)).toEqual({ event: 'stopped', code: 1 })
  })
})

describe('harness', () => {
  it('runs the harness with the flags that it was given', async () => {
    const flags = ['--threads', '2', '--attempts', '20', '--max', '5', '--algorithms', 'gcra', '--json']
    const { code, out, err } = await run(['harness', ...flags])
    expect([code, err]).toEqual([0, ''])
    expect(JSON.parse(out)).toContainEqual(expect.objectContaining({ algorithm: 'GCRA' }))
    expect((await run(['harness', '--threads', '0'])).code).toBe(2)
    const told = await run(['harness', '--threads', '0', '--json'])
    expect(JSON.parse(told.err)).toMatchObject({ error: { code: 'SLUICE_HARNESS_INVALID_OPTION' }, exitCode: 2 })
  })
})

describe('bin/sluice.mjs', () => {
  async function tree(): Promise<{ readonly root: string; readonly bin: string }> {
    const root = await mkdtemp(join(tmpdir(), 'sluice-bin-'))
    onTestFinished(() => rm(root, { recursive: true, force: true }))
    const app = join(root, 'apps/cli')
    for (const name of ['bin', 'dist/programs', 'src']) await mkdir(join(app, name), { recursive: true })
    await mkdir(join(root, 'tools'))
    const bin = join(app, 'bin/sluice.mjs')
    await copyFile(join(import.meta.dirname, '../bin/sluice.mjs'), bin)
    await writeFile(join(app, 'dist/programs/cli.js'), 'console.log("bundled", ...process.argv.slice(2))')
    return { root, bin }
  }

  it('runs the sources with the runner of the repository, where it is in one', async () => {
    const { root, bin } = await tree()
    const source = join(root, 'apps/cli/src/main.ts')
    await writeFile(source, '')
    await writeFile(join(root, 'tools/run.mjs'), 'console.log("runner", ...process.argv.slice(2))')
    const { ended, printed } = start(['top', '--json'], {}, bin)
    expect([await ended, printed.out]).toEqual([0, `runner ${source} top --json\n`])
  })

  it('runs the bundle elsewhere', async () => {
    const { bin } = await tree()
    const { ended, printed } = start(['top', '--json'], {}, bin)
    expect([await ended, printed.out]).toEqual([0, 'bundled top --json\n'])
  })
})
