import { createServer } from 'node:net'
import type { Finding } from './finding.ts'
import { failed, ok } from './finding.ts'

/** The first version that undici supports. `node:sqlite` needs 22.13. */
const OLDEST_NODE = '22.19.0'

/** Checks that the running Node is new enough for the service. */
export function nodeFinding(version: string): Finding {
  const isNewEnough = version.localeCompare(OLDEST_NODE, 'en', { numeric: true }) >= 0
  if (isNewEnough) return ok('node', version)
  return failed(
    'node',
    `${version}, expected ${OLDEST_NODE} or later`,
    'Install a newer version from https://nodejs.org.',
  )
}

/** Address that the service listens on. */
interface PortCheckOptions {
  readonly host: string
  readonly port: number
  /** Whether the service answers at this port. */
  readonly isOurs: boolean
  /** Environment variables of the port and of the address. */
  readonly variables: { readonly port: string; readonly host: string }
}

/** Checks that the port of the service is free, or in use by the service itself. */
export async function portFinding({ host, port, isOurs, variables }: PortCheckOptions): Promise<Finding> {
  const place = `${port} on ${host}`
  if (isOurs) return ok('port', `${place} is in use by the service`)
  const code = await listenError(host, port)
  if (code === undefined) return ok('port', `${place} is free`)
  if (code === 'EADDRINUSE') {
    const advice = `Find the process (ss -ltnp 'sport = :${port}'), or use another port: ${variables.port}=${port + 1}.`
    return failed('port', `${place} is in use by another program`, advice)
  }
  if (code === 'EACCES') {
    return failed(
      'port',
      `this user may not listen on ${place}`,
      `Use a port above 1023, such as ${variables.port}=8080.`,
    )
  }
  return failed('port', `cannot listen on ${place} (${code})`, `${variables.host} must be an address of this machine.`)
}

function listenError(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)))
  })
}
