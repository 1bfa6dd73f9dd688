import { ServiceError } from './service-error.ts'

/** How the process is told to run. */
export interface Settings {
  /** Address to listen on, from `HOST`; `127.0.0.1`, which only this machine can reach, when left out. */
  readonly host: string
  /** Port to listen on, from `PORT`: 0 to 65535, 0 for any free one; 8080 when left out. */
  readonly port: number
}

/** Names and values of environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>

const HIGHEST_PORT = 65_535

/**
 * The settings in `environment`, by default the environment of this process. A variable that is set to nothing counts as
 * left out. Throws `SLUICE_SERVICE_INVALID_SETTING` that names every setting that cannot be used.
 */
export function readSettings(environment: Environment = process.env): Settings {
  const host = environment['HOST'] || '127.0.0.1'
  const port = environment['PORT'] || '8080'
  const problems: { received: string; expected: string }[] = []
  // A host with a scheme, a port or spaces is a mistake that the resolver would only call "not found".
  if (!/^[\w.:%-]+$/.test(host) || /^[^:]*:\d*$/.test(host)) {
    problems.push({
      received: `HOST=${JSON.stringify(host)}`,
      expected: 'HOST to be an address or host name, such as 127.0.0.1',
    })
  }
  if (!/^\d{1,5}$/.test(port) || Number(port) > HIGHEST_PORT) {
    problems.push({
      received: `PORT=${JSON.stringify(port)}`,
      expected: `PORT to be a whole number from 0 to ${HIGHEST_PORT}`,
    })
  }
  if (problems.length > 0) {
    throw new ServiceError('SLUICE_SERVICE_INVALID_SETTING', {
      received: problems.map(({ received }) => received).join(' and '),
      expected: problems.map(({ expected }) => expected).join(' and '),
      action: 'Correct the environment variable, or leave it out: PORT is 8080 and HOST is 127.0.0.1 by default.',
    })
  }
  return { host, port: Number(port) }
}
