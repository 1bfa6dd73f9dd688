import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { ExampleProcess } from './examples-process.ts'

/** What to try. */
export interface PackedCommandPlan {
  /** Version of the npm package `node`, such as `22.19.0`. */
  readonly version: string
  /** Absolute path of the package. */
  readonly tarball: string
  readonly print: (line: string) => void
}

/**
 * Installs the package and a Node into an empty folder, and goes the way of a new user: start the service, call it
 * until it denies, stop it, run the harness. Asks the registry for Node.
 *
 * @returns 0 when all of it worked, else 1
 */
export async function packedCommandOn({ version, tarball, print }: PackedCommandPlan): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-node-'))
  try {
    writeFileSync(join(folder, 'package.json'), '{ "private": true }')
    const flags = ['--no-audit', '--no-fund', '--loglevel=error', '--ignore-scripts=false']
    execFileSync('npm', ['install', ...flags, `node@${version}`, tarball], { cwd: folder, stdio: 'inherit' })
    const bin = join(folder, 'node_modules/.bin')
    const env = { PATH: `${bin}${delimiter}${process.env['PATH']}`, SLUICE_DRAIN_MS: '0', HOME: folder }
    const run = (...args: readonly string[]): string =>
      execFileSync(join(bin, 'sluice'), args, { cwd: folder, env, encoding: 'utf8' })
    const found = execFileSync(join(bin, 'node'), ['--version'], { encoding: 'utf8' }).trim()
    const isDenied = await deniedByService(join(bin, 'sluice'), folder, env)
    const lines = run('harness', '--threads', '2', '--max', '10').trim().split('\n')
    const isExact = lines.at(-1)?.endsWith('of 10 exact') === true && lines.at(-1)?.startsWith('10 ') === true
    print(`    Node ${found}: ${isDenied ? 'denied as it should' : 'NOT DENIED'}; harness: ${lines.at(-1)}`)
    return isDenied && isExact ? 0 : 1
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Starts the service with two threads and asks for 60 units twice, of which the default rules allow 100 a minute. */
async function deniedByService(
  command: string,
  folder: string,
  env: Readonly<Record<string, string>>,
): Promise<boolean> {
  const args = ['serve', '--port', '0', '--threads', '2']
  const service = new ExampleProcess({ command, args, cwd: folder, env })
  const url = await service.printed(/(http:\S+\/check)\n/)
  await service.printed(/(Try it:)/)
  const statuses: number[] = []
  for (let call = 0; call < 2; call++) {
    const body = JSON.stringify({ user: 'ada', resource: '/api', tokens: 60 })
    const response = await fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body })
    statuses.push(response.status)
  }
  const { code, complaints } = await service.stop('SIGTERM')
  return statuses.join() === '200,429' && code === 0 && complaints === ''
}
