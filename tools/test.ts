// `npm test`: everything that must hold before a change is good. With arguments, only the tests, and the arguments go
// to vitest: `npm test -- packages/core -t 'token bucket'`.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runBinary } from './binaries.ts'
import { prepareRequirements, requirements } from './requirements.ts'
import type { Step } from './run-steps.ts'
import { runSteps, terminal } from './run-steps.ts'
import { checks } from './static-checks.ts'
import { formatSummary, summarizeTests } from './test-summary.ts'
import { runTool } from './tool-error.ts'

/** What the run leaves for its last line; undefined while no test ran. */
let summary: string | undefined

async function runTests(args: readonly string[]): Promise<number> {
  prepareRequirements(requirements)
  const folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  try {
    const report = join(folder, 'report.json')
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
    const code = await runBinary('vitest', ['run', ...reporters, ...args])
    // No report: vitest did not get as far as to start, and has said why.
    if (existsSync(report)) summary = formatSummary(summarizeTests(readFileSync(report, 'utf8'), code))
    return code
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const given = process.argv.slice(2)
const tests: Step = { title: 'tests', command: ['npx vitest run', ...given].join(' '), run: () => runTests(given) }

await runTool(() => runSteps(given.length === 0 ? [...checks, tests] : [tests], terminal))
if (summary !== undefined) console.log(`\n${summary}`)
