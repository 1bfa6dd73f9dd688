import { createServer } from 'node:net'
import { ServiceError } from '../../service-error.ts'

/** Where a server was told to listen. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
}

const HIGHEST_PORT = 65_535

/** Says in the words of the settings why a server could not listen. */
export function listenError(cause: NodeJS.ErrnoException, { host, port }: ListenAddress): ServiceError {
  const received = `port ${port} on ${host}`
  switch (cause.code) {
    case 'EADDRINUSE':
      return new ServiceError('SLUICE_SERVICE_PORT_IN_USE', {
        received: `${received}, which something else listens on`,
        expected: 'a free port',
        action: `Stop the other program, or choose another port: PORT=${port < HIGHEST_PORT ? port + 1 : 8080} npm start`,
        cause,
      })
    case 'EACCES':
      return new ServiceError('SLUICE_SERVICE_PORT_FORBIDDEN', {
        received,
        expected: 'a port that this user may use, which below 1024 is often only root',
        action: 'Choose a higher port: PORT=8080 npm start',
        cause,
      })
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new ServiceError('SLUICE_SERVICE_HOST_UNAVAILABLE', {
        received: `HOST=${host}`,
        expected: 'an address of this machine',
        action: 'Use HOST=127.0.0.1 for this machine only, or HOST=0.0.0.0 for all its addresses.',
        cause,
      })
    default:
      return new ServiceError('SLUICE_SERVICE_LISTEN_FAILED', {
        received: `${cause.message} for ${received}`,
        expected: 'to be able to listen there',
        action: 'See the cause; HOST and PORT choose another place.',
        cause,
      })
  }
}

/** Rejects with what {@link listenError} says when nobody could listen there now. The port is free again when it resolves. */
export function assertPortFree({ host, port }: ListenAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', (error) => reject(listenError(error, { host, port })))
    probe.listen({ host, port }, () => probe.close(() => resolve()))
  })
}
