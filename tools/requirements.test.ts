import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Requirement, RequirementHost } from './requirements.ts'
import { findProgram, findRequirements, prepareRequirements, requirements } from './requirements.ts'
import { repositoryRoot } from './workspace.ts'

/** A machine on which apt-get puts programs where `find` sees them, or fails, as the options say. */
function fakeMachine(options: Partial<RequirementHost> & { readonly failing?: string; readonly deaf?: boolean } = {}) {
  const installed = new Set<string>()
  const commands: string[] = []
  const lines: string[] = []
  const host: RequirementHost = {
    isRoot: true,
    hasAptGet: true,
    mayInstall: true,
    print: (line) => void lines.push(line),
    run: (command, args) => {
      commands.push([command, ...args].join(' '))
      if (args[0] === options.failing) return 100
      if (args[0] === 'install' && !options.deaf) for (const name of args) installed.add(name)
      return 0
    },
    ...options,
  }
  const requirement = (name: string): Requirement => ({
    name,
    debianPackage: `${name}-package`,
    why: 'to prove a point',
    find: () => (installed.has(`${name}-package`) ? `/usr/bin/${name}` : undefined),
  })
  return { host, installed, commands, lines, requirement }
}

describe('prepareRequirements', () => {
  it('installs and prints nothing when all programs are there', () => {
    const { host, installed, commands, lines, requirement } = fakeMachine()
    installed.add('redis-package')
    prepareRequirements([requirement('redis')], host)
    expect([commands, lines]).toEqual([[], []])
  })

  it('installs only what is missing, after an update', () => {
    const { host, installed, commands, requirement } = fakeMachine()
    installed.add('redis-package')
    prepareRequirements([requirement('redis'), requirement('wrk')], host)
    expect([...installed]).toContain('wrk-package')
    expect(commands).toEqual([
      expect.stringMatching(/^apt-get update /),
      expect.stringMatching(/^apt-get install --yes .* wrk-package$/),
    ])
  })

  it('prints what it installs, why, and how to opt out before it runs apt-get', () => {
    const printedBefore: string[] = []
    const machine = fakeMachine()
    const run: RequirementHost['run'] = (command, args) => {
      printedBefore.push(...machine.lines.splice(0))
      return machine.host.run(command, args)
    }
    prepareRequirements([machine.requirement('redis'), machine.requirement('wrk')], { ...machine.host, run })
    expect(printedBefore).toEqual([
      'Some tests need programs that are missing here. Installing them with apt-get:',
      '  redis (package redis-package), needed to prove a point',
      '  wrk (package wrk-package), needed to prove a point',
      'To opt out, stop this run and start again with SLUICE_NO_INSTALL=1; tests that need them then fail.',
    ])
  })

  it('prints what is missing after an opt-out, and lets the run go on', () => {
    const { host, commands, lines, requirement } = fakeMachine({ mayInstall: false })
    prepareRequirements([requirement('redis')], host)
    expect(commands).toEqual([])
    expect(lines).toEqual([
      'SLUICE_NO_INSTALL is set, so nothing is installed. Tests that need these programs fail:',
      '  redis (package redis-package), needed to prove a point',
    ])
  })

  it.each([
    [
      'without root',
      { isRoot: false },
      'Installing it needs root. To run the other tests without it: SLUICE_NO_INSTALL=1',
    ],
    ['without apt-get', { hasAptGet: false }, 'There is no apt-get here'],
    ['after a failing update', { failing: 'update' }, 'apt-get failed'],
    ['after a failing install', { failing: 'install' }, 'apt-get failed'],
    ['when a package does not bring the program', { deaf: true }, 'still is not found'],
  ])('stops %s with the command to run', (_name, options, reason) => {
    const { host, requirement } = fakeMachine(options)
    const prepare = () => prepareRequirements([requirement('redis')], host)
    expect(prepare).toThrow(expect.objectContaining({ code: 'REQUIREMENT_MISSING' }))
    expect(prepare).toThrow(reason)
    expect(prepare).toThrow('sudo apt-get update && sudo apt-get install --yes redis-package')
  })
})

describe('npm test with SLUICE_NO_INSTALL', () => {
  it('reports the missing programs and runs the tests', () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-path-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const env = { ...process.env, PATH: folder, SLUICE_NO_INSTALL: '1', FORCE_COLOR: '0' }
    const args = [join(repositoryRoot, 'tools/test.ts'), 'tools/run-steps.test.ts']
    const run = spawnSync(process.execPath, args, { cwd: repositoryRoot, env, encoding: 'utf8' })
    expect(run.stdout).toContain(
      'SLUICE_NO_INSTALL is set, so nothing is installed. Tests that need these programs fail:',
    )
    expect(run.stdout).toContain('  redis-server (package redis-server), needed for the tests of the Redis store')
    expect(run.stdout).toMatch(/ passed, 0 failed, 0 skipped\n$/)
    expect(run.status).toBe(0)
  })
})

describe('requirements', () => {
  it('are all found where tests run', () => {
    expect([...findRequirements(requirements).keys()]).toEqual([
      'redis-server',
      'postgres',
      'nginx',
      'openssl',
      'prometheus',
      'haproxy',
      'caddy',
      'chromium',
      'systemd-analyze',
    ])
  })

  it('are reported with the command that installs them when they are missing', () => {
    const { requirement } = fakeMachine()
    expect(() => findRequirements([requirement('redis')])).toThrow(
      'redis is needed to prove a point, and was not found. It is not installed. On Debian or Ubuntu: sudo apt-get ' +
        'update',
    )
  })
})

describe('findProgram', () => {
  it('finds the first program of that name that can be run', () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-path-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    writeFileSync(join(folder, 'data'), '')
    writeFileSync(join(folder, 'tool'), '')
    chmodSync(join(folder, 'tool'), 0o755)
    const path = ['/nowhere', folder].join(delimiter)
    expect(findProgram('tool', path)).toBe(join(folder, 'tool'))
    expect(findProgram('data', path)).toBeUndefined()
    expect(findProgram('other', path)).toBeUndefined()
  })
})
