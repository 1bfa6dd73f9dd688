import { setTimeout } from 'node:timers/promises'
import type { CliEnvironment } from './command-line/command.ts'

// The only file of the command line that touches the real clock, real timers and the environment.

/** The wall clock in milliseconds since 1970. */
export const systemNowMs = (): number => Date.now()

/** Calls `run` every `ms` milliseconds until the returned function is called. Does not keep the process alive. */
export function systemEvery(ms: number, run: () => void): () => void {
  const timer = setInterval(run, ms)
  timer.unref()
  return () => clearInterval(timer)
}

/** Waits `ms` milliseconds. Rejects if the signal aborts. */
export async function systemWait(ms: number, signal: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal })
}

/** Reads the environment. Default: that of this process. */
export function readEnvironment(
  environment: Readonly<Record<string, string | undefined>> = process.env,
): CliEnvironment {
  const at = (name: string): string | undefined => environment[name] || undefined
  return {
    url: at('SLUICE_URL'),
    apiKey: at('SLUICE_API_KEY'),
    variables: environment,
  }
}
