/** What the environment of the process says to the command line; undefined for what is not set, or set to nothing. */
export interface CliEnvironment {
  /** `SLUICE_URL` */
  readonly url: string | undefined
  /** `SLUICE_API_KEY`; never printed. */
  readonly apiKey: string | undefined
  /** `REDIS_URL`, which may hold a password. */
  readonly redisUrl: string | undefined
  /** `DATABASE_URL`, which may hold a password. */
  readonly databaseUrl: string | undefined
  /** `SLUICE_DATA_DIR` */
  readonly dataDir: string | undefined
  /** `HOST` */
  readonly host: string | undefined
  /** `PORT` */
  readonly port: string | undefined
}

/** Reads the environment of this process, or the one given. */
export function readEnvironment(
  environment: Readonly<Record<string, string | undefined>> = process.env,
): CliEnvironment {
  const at = (name: string): string | undefined => environment[name] || undefined
  return {
    url: at('SLUICE_URL'),
    apiKey: at('SLUICE_API_KEY'),
    redisUrl: at('REDIS_URL'),
    databaseUrl: at('DATABASE_URL'),
    dataDir: at('SLUICE_DATA_DIR'),
    host: at('HOST'),
    port: at('PORT'),
  }
}
