import type { BinaryName } from './binaries.ts'
import { runBinary } from './binaries.ts'
import type { Step } from './run-steps.ts'

/** What can be said about the code without running it, fastest first. */
export const checks: readonly Step[] = [
  binaryStep('lint', 'biome', ['check', '--error-on-warnings', '.']),
  binaryStep('types', 'tsc', ['-b']),
  binaryStep('unused code', 'knip', []),
]

function binaryStep(title: string, name: BinaryName, args: readonly string[]): Step {
  return { title, command: `npx ${[name, ...args].join(' ')}`, run: () => runBinary(name, args) }
}
