import { spawn } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { repositoryRoot } from './workspace.ts'

/** Stands in for npm: notes its command, and "installs" what the lock file says, with this Node as the pinned one. */
const FAKE_NPM = `#!/usr/bin/env node
import { appendFileSync, cpSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
const command = process.argv[2]
const behaviour = process.env.FAKE_NPM ?? ''
appendFileSync('npm.log', 'begin ' + command + '\\n')
if (behaviour.includes('offline')) process.exit(7)
if (behaviour.includes('slow')) {
  for (const name of ['a', 'b', 'c', 'd']) {
    mkdirSync('node_modules/' + name, { recursive: true })
    writeFileSync('node_modules/' + name + '/package.json', '{}')
    // The test lets it go on when it has seen the progress.
    while (!existsSync('seen-' + name)) await new Promise((wake) => setTimeout(wake, 10))
  }
}
setTimeout(() => {
  mkdirSync('node_modules/node/bin', { recursive: true })
  if (command === 'ci') cpSync('package-lock.json', 'node_modules/.package-lock.json')
  if (command === 'install') writeFileSync('node_modules/.package-lock.json', '{}')
  const runsScripts = command === 'rebuild' ? !behaviour.includes('never') : !behaviour.includes('scriptless')
  const node = 'node_modules/node/bin/node'
  if (runsScripts && !existsSync(node)) symlinkSync(process.env.REAL_NODE, node)
  appendFileSync('npm.log', 'end ' + command + '\\n')
}, 100)
`

interface Ended {
  readonly code: number | null
  readonly signal: string | null
  readonly out: string
  readonly err: string
}

function fakeRepository() {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-run-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(join(folder, 'tools'))
  mkdirSync(join(folder, 'bin'))
  cpSync(join(repositoryRoot, 'tools/run.mjs'), join(folder, 'tools/run.mjs'))
  writeFileSync(join(folder, 'bin/npm'), FAKE_NPM, { mode: 0o755 })
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lockWith('1.0.0')))

  const start = (args: readonly string[], npmBehaviour = '') => {
    const child = spawn(process.execPath, ['tools/run.mjs', ...args], {
      cwd: folder,
      env: {
        PATH: [join(folder, 'bin'), process.env['PATH']].join(delimiter),
        FAKE_NPM: npmBehaviour,
        REAL_NODE: process.execPath,
      },
    })
    let out = ''
    let err = ''
    const ready = new Promise<void>((settle) => {
      child.stdout.on('data', (data) => {
        out += data
        settle()
      })
    })
    child.stderr.on('data', (data) => {
      err += data
    })
    const ended = new Promise<Ended>((settle) => {
      child.on('close', (code, signal) => settle({ code, signal, out, err }))
    })
    return { child, ready, ended }
  }
  return {
    folder,
    start,
    run: (args: readonly string[], npmBehaviour = ''): Promise<Ended> => start(args, npmBehaviour).ended,
    script: (text: string) => writeFileSync(join(folder, 'script.ts'), text),
    lock: (next: object) => writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(next)),
    npmLog: () => (existsSync(join(folder, 'npm.log')) ? readFileSync(join(folder, 'npm.log'), 'utf8') : ''),
  }
}

function lockWith(version: string): object {
  return {
    packages: {
      '': {},
      'packages/core': { version: '0.1.0' },
      'node_modules/tool': { version },
      'node_modules/tool-for-another-system': { version, optional: true },
    },
  }
}

describe('run.mjs', () => {
  it('installs in a fresh clone, saying why, and then runs the script on the pinned Node', async () => {
    const repository = fakeRepository()
    repository.script(
      'const n: number = 7; console.log(process.execArgv.join(), process.argv.slice(2).join()); process.exit(n)',
    )
    const { code, out, err } = await repository.run(['--expose-gc', 'script.ts', 'a', '--b'])
    const [running, installed, ...rest] = err.split('\n')
    expect(running).toMatch(/^sluice: running `npm ci` because node_modules is missing or incomplete; ./)
    expect(installed).toMatch(/^sluice: installed the dependencies in \d+ s$/)
    expect(rest).toEqual([''])
    expect(out).toBe(
      '--conditions=source,--disable-warning=ExperimentalWarning,' +
        '--wasm-wrapper-tiering-budget=1000000000,--expose-gc a,--b\n',
    )
    expect(code).toBe(7)
  })

  it('shows how many packages are installed while it waits', async () => {
    const repository = fakeRepository()
    repository.script('')
    const names = ['a', 'b', 'c', 'd']
    repository.lock({
      packages: Object.fromEntries(names.map((name) => [`node_modules/${name}`, { version: '1.0.0' }])),
    })
    const { child, ended } = repository.start(['script.ts'], 'slow')
    let seen = ''
    child.stderr.on('data', (data) => {
      seen += data
      for (const [index, name] of names.entries()) {
        if (seen.includes(`installed ${index + 1} of 4 packages\n`)) {
          writeFileSync(join(repository.folder, `seen-${name}`), '')
        }
      }
    })
    expect((await ended).code).toBe(0)
    expect(seen.match(/installed \d of 4 packages/g)).toEqual(
      names.map((_, index) => `installed ${index + 1} of 4 packages`),
    )
  })

  it('does not install again when nothing changed, packages for other systems aside', async () => {
    const repository = fakeRepository()
    repository.script('')
    await repository.run(['script.ts'])
    rmSync(join(repository.folder, 'npm.log'))
    writeFileSync(
      join(repository.folder, 'node_modules/.package-lock.json'),
      JSON.stringify({ packages: { 'node_modules/tool': { version: '1.0.0' } } }),
    )
    expect(await repository.run(['script.ts'])).toMatchObject({ code: 0, err: '' })
    expect(repository.npmLog()).toBe('')
  })

  it.each([
    ['another version', lockWith('2.0.0'), 'asks for node_modules/tool 2.0.0, installed is 1.0.0'],
    [
      'another package',
      { packages: { 'node_modules/new': { version: '1.0.0' } } },
      'asks for node_modules/new, which is not installed',
    ],
  ])('installs again when the lock file asks for %s', async (_name, lock, reason) => {
    const repository = fakeRepository()
    repository.script('')
    await repository.run(['script.ts'])
    repository.lock(lock)
    const { code, err } = await repository.run(['script.ts'])
    expect(err).toContain(reason)
    expect(code).toBe(0)
    expect(repository.npmLog()).toBe('begin ci\nend ci\nbegin ci\nend ci\n')
  })

  it('uses npm install where there is no lock file', async () => {
    const repository = fakeRepository()
    rmSync(join(repository.folder, 'package-lock.json'))
    repository.script('')
    expect((await repository.run(['script.ts'])).code).toBe(0)
    expect(repository.npmLog()).toBe('begin install\nend install\n')
  })

  it('says what to do when npm fails', async () => {
    const repository = fakeRepository()
    repository.script('')
    const { code, err } = await repository.run(['script.ts'], 'offline')
    expect(err).toMatch(/INSTALL_FAILED: `npm ci` ended with code 7.*run `npm ci` in .* when it is back/)
    expect(code).toBe(1)
    expect(existsSync(join(repository.folder, '.install-lock'))).toBe(false)
  })

  it('fetches the pinned Node when install scripts were not run', async () => {
    const repository = fakeRepository()
    repository.script('console.log("ran")')
    const { out, err } = await repository.run(['script.ts'], 'scriptless')
    expect(err).toContain('sluice: running `npm rebuild node` because the pinned Node is not in node_modules')
    expect(out).toBe('ran\n')
  })

  it('says what to do when the pinned Node cannot be had', async () => {
    const repository = fakeRepository()
    repository.script('')
    const { code, err } = await repository.run(['script.ts'], 'scriptless never')
    expect(err).toMatch(/NODE_MISSING: .*node_modules\/node\/bin\/node .*Allow install scripts/)
    expect(code).toBe(1)
  })

  it('installs once when several scripts start at the same time', async () => {
    const repository = fakeRepository()
    repository.script('console.log("ran")')
    const runs = await Promise.all([1, 2, 3].map(() => repository.run(['script.ts'])))
    expect(runs.map(({ out }) => out)).toEqual(['ran\n', 'ran\n', 'ran\n'])
    expect(repository.npmLog()).toBe('begin ci\nend ci\n')
  })

  it('takes over the lock of a process that died while installing', async () => {
    const repository = fakeRepository()
    repository.script('console.log("ran")')
    const lock = join(repository.folder, '.install-lock')
    mkdirSync(lock)
    utimesSync(lock, 1, 1)
    expect((await repository.run(['script.ts'])).out).toBe('ran\n')
    expect(existsSync(lock)).toBe(false)
  })

  it.each([
    ['nothing', [], 'No script was given'],
    ['a script that is not there', ['absent.ts'], 'absent.ts does not exist'],
  ])('rejects %s before it installs anything', async (_name, args, message) => {
    const repository = fakeRepository()
    const { code, err } = await repository.run(args)
    expect(err).toContain(`SCRIPT_MISSING: ${message}`)
    expect(code).toBe(1)
    expect(repository.npmLog()).toBe('')
  })
})

function installedRepository(script: string) {
  const repository = fakeRepository()
  repository.script(script)
  mkdirSync(join(repository.folder, 'node_modules/node/bin'), { recursive: true })
  symlinkSync(process.execPath, join(repository.folder, 'node_modules/node/bin/node'))
  cpSync(join(repository.folder, 'package-lock.json'), join(repository.folder, 'node_modules/.package-lock.json'))
  return repository
}

describe.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('run.mjs on %s', (signal) => {
  it('lets the script finish in order and ends with its code', async () => {
    const { start } = installedRepository(
      `process.on('${signal}', () => { console.log('bye'); process.exit(3) }); setInterval(() => {}, 1e6); ` +
        "console.log('ready')",
    )
    const { child, ready, ended } = start(['script.ts'])
    await ready
    child.kill(signal)
    expect(await ended).toMatchObject({ code: 3, out: 'ready\nbye\n' })
  })

  it('dies of the signal when the script does', async () => {
    const { start } = installedRepository("setInterval(() => {}, 1e6); console.log('ready')")
    const { child, ready, ended } = start(['script.ts'])
    await ready
    child.kill(signal)
    expect(await ended).toMatchObject({ code: null, signal })
  })
})

describe('npm scripts', () => {
  it('need no particular shell: each is one command of node', () => {
    const { scripts } = JSON.parse(readFileSync(join(repositoryRoot, 'package.json'), 'utf8')) as {
      readonly scripts: Readonly<Record<string, string>>
    }
    const others = Object.values(scripts).filter((script) => !/^node tools\/run\.mjs [\w./@ -]+$/.test(script))
    expect(others).toEqual([])
  })

  const SCRIPT =
    "process.on('SIGTERM', () => { console.log('bye'); process.exit(0) }); setInterval(() => {}, 1e6); " +
    "console.log('ready')"

  /** Starts a command in the repository; resolves when the script is ready. */
  async function startReady(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const { folder } = installedRepository(SCRIPT)
    const manifest = { type: 'module', scripts: { start: 'node tools/run.mjs script.ts' } }
    writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
    const child = spawn(command, args, {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'ignore'],
      env: { PATH: process.env['PATH'] ?? '', HOME: folder, npm_config_update_notifier: 'false', ...env },
    })
    let out = ''
    // The stream ends when the last process that holds it has ended.
    const closed = new Promise<string>((settle) => child.on('close', () => settle(out)))
    await new Promise<void>((settle) => {
      child.stdout.on('data', (data) => {
        out += data
        if (out.includes('ready')) settle()
      })
    })
    return { child, closed }
  }

  it('pass a signal for npm on to the service', async () => {
    const { child, closed } = await startReady('npm', ['--silent', 'start'])
    child.kill('SIGTERM')
    expect(await closed).toContain('ready\nbye\n')
  })

  it('stop the service when the shell between ends by the signal', async () => {
    // More than one command: the shell stays, and is what the signal ends.
    const env = { npm_lifecycle_event: 'start' }
    const { child, closed } = await startReady('sh', ['-c', 'node tools/run.mjs script.ts; true'], env)
    child.kill('SIGTERM')
    expect(await closed).toBe('ready\nbye\n')
  })
})
