import type { Server } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { freePort } from '@sluice/testing/servers'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RunOutcome } from './cli.test.support.ts'
import { cliRunner } from './cli.test.support.ts'
import type { ProgramOptions, RunningProgram } from './command-line/command.ts'
import { usageOf } from './command-line/parse.ts'
import { COMMANDS } from './command-table.ts'
import { EXIT_CODE_MEANINGS } from './output/cli-error.ts'

// What holds for every command, and needs no service.

const SECRET = 'slk_4f9d1c_asecretnevertobeprinted'

const sluice = cliRunner()

const own = COMMANDS.filter(({ passesOn }) => !passesOn)
const names = COMMANDS.map(({ name }) => [name, name.split(' ')] as const)

/** The words of a command line that is complete: each needed argument is there. */
function complete(name: string): string[] {
  const { args } = COMMANDS.find((command) => command.name === name)!
  const needed = Object.entries(args).filter(([, { count }]) => count !== 'optional')
  return [...name.split(' '), ...needed.map(([argument]) => (argument === 'duration' ? '1h' : '1'))]
}

/** A command line as a shell would split it. */
function words(line: string): string[] {
  const [command = ''] = line.split(' > ')
  return [...command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, plain]) => double ?? single ?? plain!,
  )
}

function inPieces(pieces: readonly string[]): AsyncIterable<string> {
  return Readable.from(pieces)
}

/** Where a server listens; it is closed with the test. */
async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => void server.close(resolve))
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function expectUsageError(outcome: RunOutcome, text: string | RegExp): void {
  expect(outcome.err).toMatch(/^sluice: SLUICE_CLI_USAGE: /)
  expect(outcome.err).toMatch(text)
  expect(outcome).toMatchObject({ code: 2, out: '' })
}

describe('--help', () => {
  it('lists every command and every exit code', async () => {
    for (const args of [['--help'], ['-h'], ['help']]) {
      const { out, code, err } = await sluice(...args)
      expect([code, err]).toEqual([0, ''])
      for (const { name, summary } of COMMANDS) expect(out).toMatch(new RegExp(`^ {2}${name} +${summary}$`, 'm'))
      for (const [exitCode, meaning] of Object.entries(EXIT_CODE_MEANINGS))
        expect(out).toContain(`${exitCode} `.padEnd(5) + meaning)
    }
  })

  it.each(names)('of %s says what it does, how it is written, and an example', async (name, parts) => {
    const started: (readonly string[])[] = []
    const start = (_: string, { args }: ProgramOptions): RunningProgram => {
      started.push(args)
      return { pid: 1, output: inPieces([]), events: inPieces([]), errors: inPieces([]), ended: Promise.resolve(0) }
    }
    const run = cliRunner({ programs: { start } })
    const { out, code, err } = await run(...parts, '--help')
    expect([code, err]).toEqual([0, ''])
    const command = COMMANDS.find((each) => each.name === name)!
    expect(out).toContain(`Usage: ${usageOf(command)}\n`)
    for (const example of command.examples) expect(out).toContain(`\n  sluice ${example}`)
    for (const flag of Object.keys(command.flags)) expect(out).toContain(`  --${flag}`)
    expect(out.split('\n').every((line) => line.length <= 100)).toBe(true)
    expect((await run('help', ...parts)).out).toBe(out)
    // What passes its flags on to a program has them listed by it.
    expect(started).toEqual(command.passesOn ? [['--help'], ['--help']] : [])
    const { commands } = (await run(...parts, '--help', '--json')).json<{ commands: { name: string }[] }>()
    expect(commands.map((each) => each.name)).toEqual([name])
  })

  it.each(COMMANDS.flatMap(({ examples }) => examples).map((example) => [example]))(
    'has examples that can be typed: %s',
    async (example) => {
      // The files of the examples are not there, nor is a service: everything else about them is right.
      const outcome = await cliRunner({ env: { SLUICE_URL: 'http://127.0.0.1:1' } })(...words(example))
      expect(outcome.err).not.toContain('SLUICE_CLI_USAGE')
    },
  )

  it('of a group lists its commands', async () => {
    const { out, code } = await sluice('keys', '--help')
    expect(code).toBe(0)
    expect([...out.matchAll(/^ {2}(keys \w+) /gm)].map(([, name]) => name)).toEqual([
      'keys list',
      'keys create',
      'keys rotate',
      'keys revoke',
    ])
    const { commands } = (await sluice('keys', '--help', '--json')).json<{ commands: { name: string }[] }>()
    expect(commands).toHaveLength(4)
  })

  it('is given in the place of a command that is not there', async () => {
    for (const args of [[], ['keys']]) {
      const outcome = await sluice(...args)
      expect(outcome).toMatchObject({ code: 2, out: '' })
      expect(outcome.err).toContain('Usage: sluice ')
    }
  })
})

describe('--version', () => {
  it('is that of the package', async () => {
    expect(await sluice('--version')).toMatchObject({ code: 0, out: '1.2.3\n' })
    expect((await sluice('--version', '--json')).json()).toEqual({ version: '1.2.3' })
  })
})

describe('a word that is no command', () => {
  it.each([
    ['chek', 'Did you mean "sluice check"?'],
    ['rule', 'Did you mean "sluice rules"?'],
    ['dcotor', 'Did you mean "sluice doctor"?'],
    ['xylophone', /There is no command "xylophone"\. "sluice --help" lists all: serve, gateway, check, /],
  ])('%s is answered with the nearest', async (word, text) => {
    expectUsageError(await sluice(word), text)
  })

  it('is looked for among those of its group', async () => {
    expectUsageError(await sluice('rules', 'lst'), 'Did you mean "sluice rules list"?')
    expectUsageError(await sluice('keys', SECRET), /There is no command \(an API key, not shown\)\./)
  })
})

describe('summaries of commands', () => {
  it('are a verb and a noun, in at most six words', () => {
    const long = COMMANDS.filter(({ summary }) => summary.split(' ').length > 6 || !/^[A-Z][a-z]+ /.test(summary))
    expect(long.map(({ name }) => name)).toEqual([])
  })
})

describe('wrong usage', () => {
  it.each(own.map(({ name }) => [name]))('of %s: a flag that it does not have', async (name) => {
    expectUsageError(
      await sluice(...complete(name), '--jsn'),
      `"sluice ${name}" has no flag "--jsn". Did you mean --json?`,
    )
  })

  it.each(own.map(({ name }) => [name]))('of %s: an argument too many', async (name) => {
    const line = complete(name)
    const { args } = COMMANDS.find((command) => command.name === name)!
    if (Object.values(args).some(({ count }) => count === 'several')) return
    const optional = Object.values(args).filter(({ count }) => count === 'optional')
    expectUsageError(
      await sluice(...line, ...optional.map(() => '1'), 'extra'),
      /"extra" is an unexpected argument: sluice /,
    )
  })

  const withArguments = own.filter(({ args }) => Object.values(args).some(({ count }) => count !== 'optional'))

  it.each(withArguments.map(({ name }) => [name]))('of %s: an argument is missing', async (name) => {
    expectUsageError(await sluice(...complete(name).slice(0, -1)), /<\S+ is missing: sluice /)
  })

  const withValues = own.flatMap(({ name, flags }) =>
    Object.entries(flags).flatMap(([flag, { kind }]) => (kind === 'switch' ? [] : [[name, flag] as const])),
  )

  it.each(withValues)('of %s: --%s without a value', async (name, flag) => {
    expectUsageError(await sluice(...complete(name), `--${flag}`), `--${flag} needs a value: --${flag} <`)
    expectUsageError(await sluice(...complete(name), `--${flag}`, '-x'), `--${flag} needs a value`)
    expectUsageError(await sluice(...complete(name), `--${flag}=`), `--${flag} got "";`)
  })

  it.each([
    [['check', '/x', '--tokens', 'many'], '--tokens got "many"; expected a whole number'],
    [['check', '/x', '--user', 'a', '--user', 'b'], '--user is given more than once'],
    [['check', '/x', '--peek=yes'], '--peek takes no value'],
    [['check', '/x', '--descriptor', 'model'], '--descriptor got "model"; expected a name, "="'],
    [['check', '/x', '--number', 'bytes=few'], '--number got "bytes=few"; expected a name, "=" and a number'],
    [['check', '/x', '-u', 'a'], 'has no flag "-u"'],
    [['check', '/x', '--timeout', '5'], '--timeout got "5"; expected a duration such as 30s'],
    [['rules', 'get', '/x', '--at', '3'], 'Pass a resource or --at, not both'],
    [['rules', 'diff', 'x'], '"x" is not a version; expected a number'],
    [['rules', 'stage', '0', 'enforce'], '"0" is not a version'],
    [
      ['rules', 'stage', '3', 'enforced'],
      '"enforced" is not a stage; expected one of shadow, .* Did you mean enforce?',
    ],
    [['rules', 'stage', '3', 'draft'], 'A version cannot become a draft again'],
    [['rules', 'stage', '3', 'percent'], '--percent is missing'],
    [['rules', 'stage', '3', 'shadow', '--percent', '5'], '--percent needs the stage percent'],
    [['rules', 'import', 'f', '--stage', 'now'], '--stage got "now"; expected one of draft, shadow, percent, enforce'],
    [['overrides', 'put', 'user', 'u', '*'], 'Pass one of --limit and --multiplier'],
    [
      ['overrides', 'put', 'user', 'u', '*', '--limit', '1', '--multiplier', '2'],
      'Pass one of --limit and --multiplier',
    ],
    [['overrides', 'put', 'user', 'u', '*', '--limit', '-1'], '--limit got "-1"; expected a whole number or off'],
    [
      ['overrides', 'put', 'user', 'u', '*', '--limit', '1', '--expires', 'soon'],
      '--expires got "soon"; expected a date',
    ],
    [['keys', 'create', 'x'], '--role is missing: one of admin, editor, viewer, none'],
    [['keys', 'create', 'x', '--role', 'root'], '--role got "root"; expected one of admin'],
    [['keys', 'rotate', 'slk_x', '--overlap', 'long'], '--overlap got "long"; expected a duration'],
    [['blocks', 'put', 'ip', '192.0.2.7', 'long'], '"long" is not a duration'],
    [['id', 'decode', 'abc'], '"abc" is not an id'],
    [['id', 'decode', '9223372036854775808'], '"9223372036854775808" is not an id'],
    [['id', 'decode', '1', '--url', 'http://x'], 'has no flag "--url"'],
    [['doctor', '--port', '65536'], '--port got 65536; expected 0 to 65535.'],
    [['--colour', 'check'], 'has no flag "--colour"'],
    [['--colour'], '"--colour" needs a command'],
  ])('%j', async (args, text) => {
    expectUsageError(await sluice(...args), new RegExp(text.replaceAll(/[?"|()]/g, '\\$&')))
  })

  it('of a file ends with 2', async () => {
    const files = {
      'a.yaml': 'a: [',
      'b.yaml': 'tiers: []',
      'c.ndjson': '{}\n{',
      'd.json': '[]',
      'e.json': '[1]',
      'f.json': '1',
    }
    const run = cliRunner({ files })
    for (const [args, text] of [
      [['rules', 'put', 'none.yaml'], 'none.yaml: it cannot be read'],
      [['rules', 'put', 'a.yaml'], /a\.yaml: .* at line 1, column 5/],
      [['rules', 'put', 'b.yaml'], 'b.yaml: "rules" is missing'],
      [['overrides', 'import', 'c.ndjson'], 'c.ndjson: line 2 is not JSON'],
      [['overrides', 'import', 'd.json'], 'd.json: it contains no overrides'],
      [['overrides', 'import', 'e.json'], 'e.json: entry 1 is not an override'],
      [['overrides', 'import', 'f.json'], 'f.json: it is not a list'],
    ] as const) {
      const outcome = await run(...args)
      expect(outcome.err).toMatch(/^sluice: SLUICE_CLI_INVALID_FILE: /)
      expect(outcome.err).toMatch(text)
      expect(outcome.code).toBe(2)
    }
  })

  it('does not show a key that stands in the wrong place', async () => {
    for (const args of [
      ['check', '/x', SECRET],
      ['check', '/x', `--${SECRET}`],
      ['check', '/x', '--tokens', SECRET],
      [SECRET],
      ['check', '/x', '--key', `${SECRET} `],
      ['check', '/x', '--url', `http://user:${SECRET}@127.0.0.1`],
      ['rules', 'diff', SECRET],
    ]) {
      const outcome = await sluice(...args)
      expect(outcome.code).toBe(2)
      expect(outcome.err).not.toContain('asecret')
    }
  })

  it('is printed as JSON with --json', async () => {
    const outcome = await sluice('check', '--json')
    expect(outcome).toMatchObject({ code: 2, out: '' })
    expect(outcome.errorJson()).toEqual({
      error: { code: 'SLUICE_CLI_USAGE', detail: expect.stringContaining('<resource> is missing'), errors: [] },
      exitCode: 2,
    })
  })

  it('lets common flags stand anywhere', async () => {
    const before = await sluice('--json', 'id', 'decode', '1')
    expect(before.json()).toEqual((await sluice('id', '--json', 'decode', '1')).json())
    expect(before.code).toBe(0)
  })
})

describe('a service that is not there', () => {
  const asking = own.filter(({ asksService, name }) => asksService && name !== 'doctor')

  it.each(asking.map(({ name }) => [name]))('ends %s with 4', async (name) => {
    const url = `http://127.0.0.1:${await freePort()}`
    const files = { 1: 'name: x\nrules: []\noverrides: [{}]' }
    const more: Record<string, string[]> = {
      'overrides put': ['--limit', '1'],
      'keys create': ['--role', 'viewer'],
      usage: ['--user', 'u'],
      reset: ['--user', 'u'],
    }
    const line = name === 'rules stage' ? ['rules', 'stage', '1', 'shadow'] : complete(name)
    const outcome = await cliRunner({ files })(...line, ...(more[name] ?? []), '--url', url)
    expect(outcome.err).toContain(`SLUICE_CLIENT_UNREACHABLE: ${url} does not answer`)
    expect(outcome.err).toContain('Start it with "sluice serve"')
    expect(outcome.code).toBe(4)
  })

  it('is also one that is something else, or says nothing', async () => {
    const server = createServer((request, response) => {
      if (request.url !== '/v1/ids?count=1') response.writeHead(502, { 'Content-Type': 'text/html' }).end('<html>')
    })
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    onTestFinished(async () => {
      server.closeAllConnections()
      await new Promise((resolve) => void server.close(resolve))
    })
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const other = await sluice('check', '/x', '--url', url, '--json')
    expect([other.code, other.errorJson()]).toEqual([
      4,
      { exitCode: 4, error: expect.objectContaining({ code: 'SLUICE_CLIENT_UNEXPECTED_ANSWER', status: 502 }) },
    ])
    const silent = await sluice('id', 'new', '--url', url, '--timeout', '50ms')
    expect([silent.code, silent.err]).toEqual([4, expect.stringContaining('No answer within 50 ms')])
  })
})

describe('a command that is interrupted', () => {
  it('ends with 130 and says nothing', async () => {
    const server = createServer()
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    onTestFinished(async () => {
      server.closeAllConnections()
      await new Promise((resolve) => void server.close(resolve))
    })
    const interrupted = new AbortController()
    server.on('request', () => interrupted.abort())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const run = cliRunner({ signal: interrupted.signal })
    expect(await run('check', '/x', '--url', url)).toMatchObject({ code: 130, out: '', err: '' })
  })
})

describe('a command that says too little, or too much', () => {
  it.each([
    ['usage', 'Pass a resource or a caller'],
    ['reset', 'Pass a resource or a caller'],
    ['reset --note "all of them"', 'Pass a resource or a caller'],
    ['id new --count 0', '--count got 0; expected 1 to 1000.'],
    ['id new --count 1001', '--count got 1001; expected 1 to 1000.'],
    ['top --count 0', '--count got 0; expected 1 or more.'],
  ])('%s calls no service, and ends with 2', async (line, text) => {
    expectUsageError(await sluice(...words(line), '--url', 'http://127.0.0.1:1'), text)
  })
})

describe('progress', () => {
  it('is shown to people when it takes longer than a second, and taken away again', async () => {
    let pass = (): void => undefined
    const server = createServer((_, response) => {
      // Seven quarters of a second go by before the answer.
      for (let step = 0; step < 7; step++) pass()
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"ids":["1"]}')
    })
    const url = await listening(server)
    const every = (_: number, run: () => void): (() => void) => {
      pass = run
      return () => {
        pass = () => undefined
      }
    }
    const seen = await cliRunner({ isTty: true, every })('id', 'new', '--url', url)
    expect(seen.err).toBe(`${`\r\u001B[2Kasking ${url} ... 1 s`.repeat(4)}\r\u001B[2K`)
    expect(seen.out).toBe('1\n')
    expect((await cliRunner({ isTty: false, every })('id', 'new', '--url', url)).err).toBe('')
  })

  it('is shown by a live command until it has something to show', async () => {
    let pass = (): void => undefined
    const server = createServer((request) => {
      for (let step = 0; step < 4; step++) pass()
      request.socket.destroy()
    })
    const url = await listening(server)
    const every = (_: number, run: () => void): (() => void) => {
      pass = run
      return () => undefined
    }
    const seen = await cliRunner({ isTty: true, every })('top', '--url', url)
    expect(seen.err).toContain(`\r\u001B[2Kasking ${url} ... 1 s\r\u001B[2Ksluice: SLUICE_CLIENT_UNREACHABLE`)
    expect([seen.code, seen.out]).toEqual([4, ''])
  })
})

describe('serve and harness', () => {
  it.each(['serve', 'harness'])('%s says how, when it is not installed', async (name) => {
    const outcome = await sluice(name, '--threads', '2')
    expect(outcome.code).toBe(1)
    expect(outcome.err).toMatch(
      /^sluice: SLUICE_CLI_PROGRAM_MISSING: The package @sluice\/\w+ is not installed\b.*"npm /,
    )
  })

  it.each(['serve', 'harness'])('%s passes its flags on, and ends as the program does', async (name) => {
    const started: unknown[] = []
    const run = cliRunner({
      programs: {
        start: (packageName, options) => {
          started.push([packageName, options])
          return { pid: 1, output: inPieces([]), events: inPieces([]), errors: inPieces([]), ended: Promise.resolve(7) }
        },
      },
    })
    expect((await run(name, '--port', '1', '-x', 'y')).code).toBe(7)
    expect((await run(name, '--', '--help')).code).toBe(7)
    expect(started).toEqual([
      [`@sluice/${name === 'serve' ? 'service' : 'harness'}`, { args: ['--port', '1', '-x', 'y'], capture: 'nothing' }],
      [`@sluice/${name === 'serve' ? 'service' : 'harness'}`, { args: ['--help'], capture: 'nothing' }],
    ])
  })

  /** A run in which the program says this on standard error, and ends with this code. */
  function failing(errors: readonly string[], code: number): ReturnType<typeof cliRunner> {
    const program = {
      pid: 1,
      output: inPieces([]),
      events: inPieces([]),
      errors: inPieces(errors),
      ended: Promise.resolve(code),
    }
    return cliRunner({ programs: { start: () => program } })
  }

  it.each(['serve', 'harness'])('%s tells programs of a failure as every command does', async (name) => {
    const said = ['{"level":"warn"}\nSLUICE_SERVICE_INVAL', 'ID_SETTING: a setting is wrong. Received "x".\n']
    const outcome = await failing(said, 1)(name, '--json')
    const [log, failure] = outcome.err.split('\n')
    expect(log).toBe('{"level":"warn"}')
    expect(JSON.parse(failure!)).toEqual({
      error: { code: 'SLUICE_SERVICE_INVALID_SETTING', detail: 'a setting is wrong. Received "x".', errors: [] },
      exitCode: 1,
    })
    expect(outcome.code).toBe(1)
    const crash = await failing(['Error: at a loss\n    at main.ts:1\n'], 7)(name, '--json')
    expect(crash.errorJson()).toMatchObject({
      error: { code: 'SLUICE_CLI_PROGRAM_FAILED', detail: 'Error: at a loss\n    at main.ts:1' },
      exitCode: 7,
    })
  })

  it.each(['serve', 'harness'])('%s hands on what is said besides when all goes well', async (name) => {
    const outcome = await failing(['(node:1) a warning'], 0)(name, '--json')
    expect([outcome.code, outcome.err]).toEqual([0, '(node:1) a warning\n'])
    expect((await failing([], 1)(name, '--json')).err).toBe('')
  })
})
