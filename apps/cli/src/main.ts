import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { runCli } from './cli.ts'
import { COMMANDS } from './command-table.ts'
import { readEnvironment, systemEvery, systemNowMs, systemWait } from './environment.ts'
import { invalidFile } from './files/read-document.ts'
import { streamTerminal } from './output/terminal.ts'
import { nodePrograms } from './programs/child-program.ts'

async function main(): Promise<void> {
  const interrupted = new AbortController()
  process.once('SIGINT', () => interrupted.abort())
  // The reader may close the pipe early: `sluice rules list | head -1`.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit(0)
  })
  const environment = readEnvironment()
  process.exitCode = await runCli(process.argv.slice(2), {
    commands: COMMANDS,
    environment,
    terminal: streamTerminal(process.stdout, process.stderr, environment.variables),
    nowMs: systemNowMs,
    wait: systemWait,
    every: systemEvery,
    nodeVersion: process.versions.node,
    readText,
    programs: nodePrograms(import.meta.url),
    signal: interrupted.signal,
    version: versionOfPackage(),
  })
  // Do not wait for requests in flight.
  if (interrupted.signal.aborted) process.exit()
}

async function readText(path: string): Promise<string> {
  if (path === '-') return await text(process.stdin)
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw invalidFile(path, `it cannot be read (${(error as Error).message}).`)
  }
}

function versionOfPackage(): string {
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  return (JSON.parse(manifest) as { readonly version: string }).version
}

main().catch((error: unknown) => {
  console.error(error)
  process.exitCode = 1
})
