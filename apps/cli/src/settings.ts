/** What the environment of the process says to the command line; undefined for what is not set, or set to nothing. */
export interface CliEnvironment {
  /** `SLUICE_URL` */
  readonly url: string | undefined
  /** `SLUICE_API_KEY`; never printed. */
  readonly apiKey: string | undefined
  /** All of it, for what the service reads itself. May hold passwords. */
  readonly variables: Readonly<Record<string, string | undefined>>
}

/** Reads the environment of this process, or the one given. */
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
