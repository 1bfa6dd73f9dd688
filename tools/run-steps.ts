import { ToolError } from './tool-error.ts'

/** One step of a longer run. */
export interface Step {
  /** What it shows, in a few words. */
  readonly title: string
  /** The command that repeats this step alone, as one would type it. */
  readonly command: string
  /** Does the work; its exit code, 0 for success. */
  readonly run: () => Promise<number>
}

/** What a run of steps needs from outside. */
export interface StepHost {
  readonly print: (line: string) => void
  /** Milliseconds from any fixed point; never goes back. */
  readonly nowMs: () => number
}

/** Prints to the terminal and measures real time. */
export const terminal: StepHost = {
  print: (line) => console.log(line),
  nowMs: () => performance.now(),
}

/**
 * Runs the steps in order, with the title and the time of each. The first one that fails stops the run with a
 * `STEP_FAILED` error that names the command to repeat it.
 */
export async function runSteps(steps: readonly Step[], { print, nowMs }: StepHost): Promise<void> {
  for (const [index, step] of steps.entries()) {
    print(`\n[${index + 1}/${steps.length}] ${step.title}: ${step.command}`)
    const startedAt = nowMs()
    const code = await step.run()
    const seconds = ((nowMs() - startedAt) / 1000).toFixed(1)
    if (code !== 0) {
      throw new ToolError(
        'STEP_FAILED',
        `${step.title} failed with code ${code} after ${seconds} s; its output is above. To repeat it alone: ` +
          `${step.command}`,
      )
    }
    print(`    ${step.title} passed in ${seconds} s`)
  }
}
