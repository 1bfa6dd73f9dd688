import { ToolError } from './tool-error.ts'

/** One step of a longer run. */
export interface Stage {
  /** What it shows, in a few words. */
  readonly title: string
  /** The command that repeats this stage alone, as one would type it. */
  readonly command: string
  /** Does the work; its exit code, 0 for success. */
  readonly run: () => Promise<number>
}

/** What a run of stages needs from outside. */
export interface StageHost {
  readonly print: (line: string) => void
  /** Milliseconds from any fixed point; never goes back. */
  readonly nowMs: () => number
}

/** Prints to the terminal and measures real time. */
export const terminal: StageHost = {
  print: (line) => console.log(line),
  nowMs: () => performance.now(),
}

/**
 * Runs the stages in order, with the title and the time of each. The first one that fails stops the run with a
 * `STAGE_FAILED` error that names the command to repeat it.
 */
export async function runStages(stages: readonly Stage[], { print, nowMs }: StageHost): Promise<void> {
  for (const [index, stage] of stages.entries()) {
    print(`\n[${index + 1}/${stages.length}] ${stage.title}: ${stage.command}`)
    const startedAt = nowMs()
    const code = await stage.run()
    const seconds = ((nowMs() - startedAt) / 1000).toFixed(1)
    if (code !== 0) {
      throw new ToolError(
        'STAGE_FAILED',
        `${stage.title} failed with code ${code} after ${seconds} s; its output is above. To repeat it alone: ` +
          `${stage.command}`,
      )
    }
    print(`    ${stage.title} passed in ${seconds} s`)
  }
}
