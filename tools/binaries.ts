import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { repositoryRoot } from './workspace.ts'

/** Where the programs that come with npm packages start. They run on this process's Node, whatever the PATH says. */
const BINARIES = {
  biome: '@biomejs/biome/bin/biome',
  knip: 'knip/bin/knip.js',
  tsc: 'typescript/bin/tsc',
  vite: 'vite/bin/vite.js',
  vitest: 'vitest/vitest.mjs',
} as const

/** A program that comes with an npm package. */
export type BinaryName = keyof typeof BINARIES

/**
 * Runs a program in the repository, its output in ours; its exit code, 1 when a signal ended it. `flags`: those of
 * Node.
 */
export function runBinary(name: BinaryName, args: readonly string[], flags: readonly string[] = []): Promise<number> {
  const path = join(repositoryRoot, 'node_modules', BINARIES[name])
  return new Promise((settle, fail) => {
    const child = spawn(process.execPath, [...flags, path, ...args], { cwd: repositoryRoot, stdio: 'inherit' })
    child.on('error', fail)
    child.on('exit', (code) => settle(code ?? 1))
  })
}
