import type { Server } from 'node:net'
import { createServer } from 'node:net'
import type { HealthCheck } from '../operations/health.ts'
import { ServiceError } from '../service-error.ts'
import { SETTING_TABLE } from '../setting-table.ts'
import type { Settings } from '../settings.ts'
import { hostInUrl } from '../settings.ts'
import type { ListenerTls } from './tls-files.ts'

/** The name of a listener: its label in metrics and its name in `/readyz`. */
export type ListenerName = 'http' | 'resp' | 'grpc' | 'gateway'

/**
 * A protocol that clients speak to one thread. A listener only translates: operations decide. It runs once: new,
 * listening, draining, stopped.
 */
export interface Listener {
  readonly name: ListenerName
  /** The port that it listens on, also if the settings say 0. Undefined unless it listens. */
  readonly port: number | undefined
  /** Number of open connections. */
  readonly connections: number
  /** Undefined: plain text. */
  readonly tls?: Pick<ListenerTls, 'reasons'> | undefined
  /** Resolves when clients can connect; rejects with a `SLUICE_SERVICE_*` error. */
  start(): Promise<void>
  /** Serves on and lets clients move to other nodes; resolves after `drainMs`. */
  drain(drainMs: number): Promise<void>
  /** Accepts nothing more, answers what has begun, closes all connections. */
  stop(): Promise<void>
}

/** Ports by listener. A listener without a port is off. */
export type ListenerPorts = Readonly<Partial<Record<ListenerName, number>>>

/** Ports of the listeners that the settings turn on. */
export function listenerPorts({ port, resp, grpc, gateway }: PortSettings): ListenerPorts {
  return {
    http: port,
    ...(resp && { resp: resp.port }),
    ...(grpc && { grpc: grpc.port }),
    ...(gateway && { gateway: gateway.port }),
  }
}

/** The settings that say which listeners are on. */
type PortSettings = Pick<Settings, 'port' | 'resp' | 'grpc' | 'gateway'>

/** The variable of the setting that chooses the port of each listener. */
export const PORT_VARIABLES: Readonly<Record<ListenerName, string>> = {
  http: SETTING_TABLE.port.variable,
  resp: SETTING_TABLE.respPort.variable,
  grpc: SETTING_TABLE.grpcPort.variable,
  gateway: SETTING_TABLE.gatewayPort.variable,
}

/** What a client of a listener needs. `routes`: what each route says. */
export type ListenerAccess = 'none' | 'key' | 'certificate' | 'routes'

/** What clients of a listener need, by the settings. A client certificate stands for a key. */
export function listenerAccess(name: ListenerName, settings: Settings): ListenerAccess {
  if (name === 'gateway') return 'routes'
  const tls = name === 'http' ? undefined : settings[name]?.tls
  if (tls?.clientCa !== undefined) return 'certificate'
  return settings.checkKey ? 'key' : 'none'
}

const ACCESS_TEXTS: Readonly<Record<ListenerAccess, string>> = {
  none: 'no API key needed',
  key: 'API key needed',
  certificate: 'client certificate needed',
  routes: 'each route says who may call',
}

/** For people: what clients need. */
export function accessText(name: ListenerName, settings: Settings): string {
  return ACCESS_TEXTS[listenerAccess(name, settings)]
}

/** How a listener stands, for `/readyz`. A thread that answers has started all listeners. */
export function listenerHealth({ name, port, tls }: Listener, settings: Settings): HealthCheck {
  const place = port === undefined ? 'stopped' : `${hostInUrl(settings.host)}:${port}`
  const detail = `${place}; ${accessText(name, settings)}`
  return { name: `listener ${name}`, ready: true, detail, reasons: tls?.reasons ?? [] }
}

/** Where a server is to listen. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
}

/** Listens; rejects with {@link listenError}. `sharesPort`: whether other threads listen on the same port. */
export function listen(
  server: Server,
  { host, port, variable }: ListenAttempt,
  { sharesPort = false, onLater }: { readonly sharesPort?: boolean; readonly onLater: (error: Error) => void },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException): void => reject(listenError(error, { host, port, variable }))
    server.once('error', onError)
    server.listen({ host, port, reusePort: sharesPort }, () => {
      server.off('error', onError)
      // Such as no file descriptors left for another connection: the server goes on with those it has.
      server.on('error', onLater)
      resolve()
    })
  })
}

/** An address, and the variable of the setting that chooses its port. */
export interface ListenAttempt extends ListenAddress {
  readonly variable: string
}

const HIGHEST_PORT = 65_535

/** Says in the words of the settings why a server could not listen. */
export function listenError(cause: NodeJS.ErrnoException, { host, port, variable }: ListenAttempt): ServiceError {
  const received = `port ${port} on ${host}`
  switch (cause.code) {
    case 'EADDRINUSE':
      return new ServiceError('SLUICE_SERVICE_PORT_IN_USE', {
        received: `${received}, which something else listens on`,
        expected: 'a free port',
        action: `Stop the other program, or choose another port: ${variable}=${port < HIGHEST_PORT ? port + 1 : 8080}`,
        cause,
      })
    case 'EACCES':
      return new ServiceError('SLUICE_SERVICE_PORT_FORBIDDEN', {
        received,
        expected: 'a port that this user may use, which below 1024 is often only root',
        action: `Choose a higher port: ${variable}=8080`,
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
        action: `See the cause; HOST and ${variable} choose another place.`,
        cause,
      })
  }
}

/** Rejects with {@link listenError} if one of the ports cannot be listened on. They are free again when it resolves. */
export async function assertPortsFree(settings: PortSettings & Pick<Settings, 'host'>): Promise<void> {
  for (const [name, port] of Object.entries(listenerPorts(settings))) {
    const probe = createServer()
    const variable = PORT_VARIABLES[name as ListenerName]
    await listen(probe, { host: settings.host, port, variable }, { onLater: () => undefined })
    await new Promise((resolve) => probe.close(resolve))
  }
}
