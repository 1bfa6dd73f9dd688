import { Session } from 'node:inspector/promises'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { repositoryRoot } from '../workspace.ts'

/** Called functions by file, relative to the repository. */
export type CalledFunctions = ReadonlyMap<string, readonly string[]>

const SOURCE = /^(?:packages|apps)\/[^/]+\/src\/.*\.ts$/

/** Counts the functions of this repository that V8 calls in this thread. Starts at once. */
export class Coverage {
  readonly #session = new Session()

  static async start(): Promise<Coverage> {
    const coverage = new Coverage()
    coverage.#session.connect()
    await coverage.#session.post('Profiler.enable')
    await coverage.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
    return coverage
  }

  /** The functions that were called since the last call of this method. */
  async take(): Promise<CalledFunctions> {
    const { result } = await this.#session.post('Profiler.takePreciseCoverage')
    const called = new Map<string, string[]>()
    for (const { url, functions } of result) {
      const path = url.startsWith('file:') ? relative(repositoryRoot, fileURLToPath(url)) : ''
      if (!SOURCE.test(path)) continue
      // A name is not unique in a file; the place is. The module itself has none.
      const names = functions
        .filter(
          ({ functionName, ranges }) => ranges[0]!.count > 0 && (functionName !== '' || ranges[0]!.startOffset > 0),
        )
        .map(({ functionName, ranges }) => `${functionName}@${ranges[0]!.startOffset}`)
      if (names.length > 0) called.set(path, names)
    }
    return called
  }
}
