import type { BinaryName } from './binaries.ts'
import { runBinary } from './binaries.ts'
import type { Stage } from './stages.ts'

/** What can be said about the code without running it, fastest first. */
export const checks: readonly Stage[] = [
  binaryStage('lint', 'biome', ['check', '--error-on-warnings', '.']),
  binaryStage('types', 'tsc', ['-b']),
  binaryStage('unused code', 'knip', []),
]

function binaryStage(title: string, name: BinaryName, args: readonly string[]): Stage {
  return { title, command: `npx ${[name, ...args].join(' ')}`, run: () => runBinary(name, args) }
}
