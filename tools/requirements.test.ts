import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Requirement, RequirementHost } from './requirements.ts'
import { ensureRequirements, findProgram, requirements } from './requirements.ts'

/** A machine on which apt-get puts programs where `find` sees them, unless it is told to fail. */
function fakeMachine(options: Partial<RequirementHost> & { readonly failing?: string; readonly deaf?: boolean } = {}) {
  const installed = new Set<string>()
  const commands: string[] = []
  const lines: string[] = []
  const host: RequirementHost = {
    isRoot: true,
    hasAptGet: true,
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

describe('ensureRequirements', () => {
  it('answers where the programs are and installs nothing when they are there', () => {
    const { host, installed, commands, requirement } = fakeMachine()
    installed.add('redis-package')
    expect([...ensureRequirements([requirement('redis')], host)]).toEqual([['redis', '/usr/bin/redis']])
    expect(commands).toEqual([])
  })

  it('installs only what is missing, after an update, and says why', () => {
    const { host, installed, commands, lines, requirement } = fakeMachine()
    installed.add('redis-package')
    const found = ensureRequirements([requirement('redis'), requirement('wrk')], host)
    expect(found.get('wrk')).toBe('/usr/bin/wrk')
    expect(commands).toEqual([
      expect.stringMatching(/^apt-get update /),
      expect.stringMatching(/^apt-get install --yes .* wrk-package$/),
    ])
    expect(lines).toEqual(['installing wrk-package with apt-get, wrk is needed to prove a point'])
  })

  it.each([
    ['not being root', { isRoot: false }, 'Installing it needs root'],
    ['no apt-get', { hasAptGet: false }, 'There is no apt-get here'],
    ['a failing update', { failing: 'update' }, 'apt-get failed'],
    ['a failing install', { failing: 'install' }, 'apt-get failed'],
    ['a package that does not bring the program', { deaf: true }, 'still is not found'],
  ])('stops at %s with the command to run', (_name, options, reason) => {
    const { host, requirement } = fakeMachine(options)
    const ensure = () => ensureRequirements([requirement('redis')], host)
    expect(ensure).toThrow(expect.objectContaining({ code: 'REQUIREMENT_MISSING' }))
    expect(ensure).toThrow(reason)
    expect(ensure).toThrow('sudo apt-get update && sudo apt-get install --yes redis-package')
  })

  it('has nothing to do for an empty list', () => {
    const { host, commands } = fakeMachine({ isRoot: false, hasAptGet: false })
    expect(ensureRequirements([], host).size).toBe(0)
    expect(commands).toEqual([])
  })
})

describe('requirements', () => {
  it('are all found where tests run, with nothing to install', () => {
    const { host, commands } = fakeMachine({ isRoot: false, hasAptGet: false })
    const found = ensureRequirements(requirements, host)
    expect([...found.keys()]).toEqual([
      'redis-server',
      'postgres',
      'nginx',
      'openssl',
      'prometheus',
      'haproxy',
      'systemd-analyze',
    ])
    expect(commands).toEqual([])
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
