import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { ToolError } from './tool-error.ts'

/** A program outside npm that the tests need. */
export interface Requirement {
  /** The program, as one would type it. */
  readonly name: string
  /** Where it is, or undefined when it is not installed. */
  readonly find: () => string | undefined
  /** The package of Debian and Ubuntu that brings it. */
  readonly debianPackage: string
  /** What it is needed for: the rest of a sentence that begins with "needed". */
  readonly why: string
}

/** Set to anything but `0` or nothing, nothing is installed: the tests that need a missing program fail and say so. */
const NO_INSTALL_VARIABLE = 'SLUICE_NO_INSTALL'

/** What the tests need. A missing program is installed, stops the run or fails its tests; it never skips a test. */
export const requirements: readonly Requirement[] = [
  {
    name: 'redis-server',
    // Of Redis 7.0 or later; it is the sentinel too. The package starts a server on port 6379, which no test uses.
    debianPackage: 'redis-server',
    why: 'for the tests of the Redis store',
    find: () => findProgram('redis-server'),
  },
  {
    name: 'postgres',
    // Version 13 or later. The package keeps the program out of PATH and starts a server on port 5432, which no test
    // uses.
    debianPackage: 'postgresql',
    why: 'for the tests of the configuration store',
    find: () => findProgram('postgres') ?? findPostgres(),
  },
  {
    name: 'nginx',
    // The package starts a server on port 80, which no test uses, and keeps the program in /usr/sbin.
    debianPackage: 'nginx',
    why: 'for the example that stands behind it and for deploy/nginx',
    find: () => findProgram('nginx') ?? findProgram('nginx', '/usr/sbin'),
  },
  {
    name: 'openssl',
    debianPackage: 'openssl',
    why: 'for the certificates of test servers that speak TLS',
    find: () => findProgram('openssl'),
  },
  {
    name: 'prometheus',
    // Version 2.42 or later; brings promtool too. The package starts a server on port 9090, which no test uses.
    debianPackage: 'prometheus',
    why: 'for the rules and dashboards of deploy/',
    find: () => findProgram('prometheus'),
  },
  {
    name: 'haproxy',
    // The package keeps the program in /usr/sbin.
    debianPackage: 'haproxy',
    why: 'for deploy/haproxy',
    find: () => findProgram('haproxy') ?? findProgram('haproxy', '/usr/sbin'),
  },
  {
    name: 'caddy',
    // Version 2.6 or later. The package starts a server on port 80, which no test uses.
    debianPackage: 'caddy',
    why: 'for examples/forward-auth',
    find: () => findProgram('caddy'),
  },
  {
    name: 'chromium',
    debianPackage: 'chromium',
    why: 'for the tests of the dashboard',
    find: () => findProgram('chromium') ?? findProgram('chromium-browser') ?? findProgram('google-chrome'),
  },
  {
    name: 'systemd-analyze',
    debianPackage: 'systemd',
    why: 'for the unit in deploy/systemd',
    find: () => findProgram('systemd-analyze'),
  },
]

/** What {@link prepareRequirements} needs from the machine. */
export interface RequirementHost {
  readonly isRoot: boolean
  readonly hasAptGet: boolean
  /** Whether the machine may be changed: no, when {@link NO_INSTALL_VARIABLE} is set. */
  readonly mayInstall: boolean
  /** Runs a program with its output in ours; its exit code. */
  readonly run: (command: string, args: readonly string[]) => number
  readonly print: (line: string) => void
}

/**
 * Prepares a run of the tests: installs what is missing, as root with apt-get. It prints the packages, their purpose
 * and how to opt out before it starts. After an opt-out it prints what is missing, and the run goes on.
 *
 * @throws ToolError `REQUIREMENT_MISSING` with the command to run, when something is missing and cannot be installed
 * here, or was installed and still cannot be found
 */
export function prepareRequirements(list: readonly Requirement[], host: RequirementHost = machine()): void {
  const missing = list.filter((requirement) => requirement.find() === undefined)
  if (missing.length === 0) return
  if (!host.mayInstall) {
    host.print(`${NO_INSTALL_VARIABLE} is set, so nothing is installed. Tests that need these programs fail:`)
    for (const requirement of missing) host.print(describe(requirement))
    return
  }
  install(missing, host)
  findRequirements(missing, 'It was installed and still is not found.')
}

/**
 * Where each program is, by name.
 *
 * @throws ToolError `REQUIREMENT_MISSING` with the command to run
 */
export function findRequirements(
  list: readonly Requirement[],
  reason = 'It is not installed.',
): ReadonlyMap<string, string> {
  return new Map(
    list.map((requirement) => {
      const path = requirement.find()
      if (path === undefined) throw missingError([requirement], reason)
      return [requirement.name, path]
    }),
  )
}

function install(missing: readonly Requirement[], host: RequirementHost): void {
  const optOut = `To run the other tests without it: ${NO_INSTALL_VARIABLE}=1 npm test.`
  if (!host.hasAptGet) throw missingError(missing, `There is no apt-get here; install it with your system. ${optOut}`)
  if (!host.isRoot) throw missingError(missing, `Installing it needs root. ${optOut}`)
  host.print('Some tests need programs that are missing here. Installing them with apt-get:')
  for (const requirement of missing) host.print(describe(requirement))
  host.print(`To opt out, stop this run and start again with ${NO_INSTALL_VARIABLE}=1; tests that need them then fail.`)
  const quiet = ['-qq', '-o=Dpkg::Use-Pty=0']
  const packages = missing.map((requirement) => requirement.debianPackage)
  const isInstalled =
    host.run('apt-get', ['update', ...quiet]) === 0 &&
    host.run('apt-get', ['install', '--yes', '--no-install-recommends', ...quiet, ...packages]) === 0
  if (!isInstalled) throw missingError(missing, `apt-get failed; its output is above. ${optOut}`)
}

function describe({ name, debianPackage, why }: Requirement): string {
  return `  ${name} (package ${debianPackage}), needed ${why}`
}

function sayWhy({ name, why }: Requirement): string {
  return `${name} is needed ${why}`
}

function missingError(missing: readonly Requirement[], reason: string): ToolError {
  const packages = missing.map((requirement) => requirement.debianPackage).join(' ')
  const command = `sudo apt-get update && sudo apt-get install --yes ${packages}`
  return new ToolError(
    'REQUIREMENT_MISSING',
    `${missing.map(sayWhy).join('; ')}, and was not found. ${reason} On Debian or Ubuntu: ${command}`,
  )
}

function machine(): RequirementHost {
  return {
    isRoot: process.getuid?.() === 0,
    mayInstall: ['', '0'].includes(process.env[NO_INSTALL_VARIABLE] ?? ''),
    hasAptGet: existsSync('/etc/debian_version') && findProgram('apt-get') !== undefined,
    run: (command, args) => {
      const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
      return spawnSync(command, args, { stdio: ['ignore', 'inherit', 'inherit'], env }).status ?? 1
    },
    print: (line) => console.log(line),
  }
}

/** The path of a program on the PATH (or on the one given), or undefined: the usual `find` of a requirement. */
export function findProgram(name: string, path: string = process.env['PATH'] ?? ''): string | undefined {
  return path
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find(isExecutable)
}

/** The newest PostgreSQL server where Debian and Ubuntu put it. */
function findPostgres(): string | undefined {
  const folder = '/usr/lib/postgresql'
  const versions = existsSync(folder) ? readdirSync(folder) : []
  return versions
    .toSorted((one, other) => Number(other) - Number(one))
    .map((version) => join(folder, version, 'bin', 'postgres'))
    .find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
