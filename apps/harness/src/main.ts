import { systemClock } from '@sluice/core'
import { runHarness } from './harness.ts'
import { readApiKey } from './settings.ts'
import { STORES } from './targets/store-targets.ts'
import { isHarnessError } from './tests/harness-error.ts'
import { TESTED_ALGORITHMS } from './tests/tested-algorithms.ts'

async function main(): Promise<void> {
  process.exitCode = await runHarness(process.argv.slice(2), {
    algorithms: TESTED_ALGORITHMS,
    stores: STORES,
    stopwatch: systemClock,
    print: console.log,
    printError: console.error,
    apiKey: readApiKey(),
  })
}

main().catch((error: unknown) => {
  console.error(isHarnessError(error) ? error.message : error)
  process.exitCode = 1
})
