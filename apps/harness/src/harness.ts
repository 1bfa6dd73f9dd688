import type { Clock } from '@sluice/core'
import type { Choices, HarnessOptions } from './harness-options.ts'
import { helpText, parseOptions } from './harness-options.ts'
import { reportJson, reportText, summaryText } from './report.ts'
import { moduleTarget } from './targets/module-target.ts'
import { serviceTarget } from './targets/service-target.ts'
import type { TestResult } from './tests/admission-tests.ts'
import { accuracyTest, distributedTest, raceTest, wrongCounts } from './tests/admission-tests.ts'
import { isHarnessError } from './tests/harness-error.ts'
import type { Target } from './tests/test-bed.ts'
import type { TestedAlgorithm } from './tests/tested-algorithms.ts'

/** What the harness works with. */
export interface HarnessParts extends Choices {
  /** Prints a text and a line end: the report. */
  readonly print: (text: string) => void
  /** The same for what is not part of the report. */
  readonly printError: (text: string) => void
  /** Real time, for what a test took. */
  readonly stopwatch: Clock
  /** The API key for a service under test. */
  readonly apiKey?: string | undefined
}

/** What the exit code says. */
const EXIT_CODES = { exact: 0, wrong: 1, misused: 2 } as const

/**
 * Does what the arguments of the command line say and answers the exit code. Rejects when a test could not be finished.
 */
export async function runHarness(args: readonly string[], parts: HarnessParts): Promise<number> {
  let options: HarnessOptions
  try {
    options = parseOptions(args, parts)
  } catch (error) {
    if (!isHarnessError(error, 'SLUICE_HARNESS_INVALID_OPTION')) throw error
    parts.printError(`${error.message} "--help" tells more.`)
    return EXIT_CODES.misused
  }
  if (options.help) {
    parts.print(helpText(parts))
    return EXIT_CODES.exact
  }
  const store = await openStore(options, parts)
  try {
    return await runTests(store, options, parts)
  } finally {
    await store.close()
  }
}

async function openStore(options: HarnessOptions, parts: HarnessParts): Promise<Target> {
  const { threads, redisUrl, target, maxRequests } = options
  const { stopwatch, printError, apiKey } = parts
  if (target !== undefined) {
    if (/^https?:/.test(target)) return await serviceTarget({ url: target, apiKey, threads, stopwatch })
    printError('A module is called by interleaved tasks of one thread; --threads and --algorithms have no effect.')
    return moduleTarget({ path: target, maxRequests, stopwatch })
  }
  const choice = parts.stores[options.store]!
  if (choice.notice !== undefined) printError(choice.notice)
  return await choice.open({ threads, redisUrl, stopwatch, printError })
}

async function runTests(store: Target, options: HarnessOptions, parts: HarnessParts): Promise<number> {
  const all: TestResult[] = []
  const { title } = store
  const algorithms = title === undefined ? options.algorithms : [{ ...options.algorithms[0]!, title }]
  for (const algorithm of algorithms) {
    const results = await testAlgorithm(store, algorithm, options)
    // A report that grows algorithm by algorithm; JSON can only be printed whole.
    if (!options.json) parts.print(`${all.length > 0 ? '\n' : ''}${reportText(algorithm.title, results)}`)
    all.push(...results)
  }
  parts.print(options.json ? reportJson(all) : `\n${summaryText(all)}`)
  const wrong = all.flatMap(wrongCounts)
  for (const sentence of wrong) parts.printError(`Wrong count: ${sentence}`)
  return wrong.length > 0 ? EXIT_CODES.wrong : EXIT_CODES.exact
}

async function testAlgorithm(
  store: Target,
  { title, ruleFor }: TestedAlgorithm,
  { maxRequests, attempts }: HarnessOptions,
): Promise<TestResult[]> {
  const results: TestResult[] = []
  for (const max of maxRequests) {
    const bed = await store.prepare(ruleFor(max, store.windowSeconds), max)
    try {
      results.push({
        algorithm: title,
        maxRequests: max,
        race: await raceTest(bed, { attempts, threads: store.threads }),
        accuracy: await accuracyTest(bed),
        distributed: await distributedTest(bed),
      })
    } finally {
      await bed.close()
    }
  }
  return results
}
