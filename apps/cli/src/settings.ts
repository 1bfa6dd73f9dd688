import type { CliEnvironment } from './command-line/command.ts'

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
