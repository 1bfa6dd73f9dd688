import type { Server } from 'node:net'
import { createServer } from 'node:net'
import type { HealthCheck } from '../operations/health.ts'
import { ServiceError } from '../service-error.ts'
import type { SettingName } from '../settings/setting-table.ts'
import { SETTING_TABLE } from '../settings/setting-table.ts'
import type { Settings } from '../settings/settings.ts'
import type { ListenerTls } from './tls-files.ts'

/** The name of a listener: its label in metrics and its name in `/readyz`. */
export type ListenerName = 'http' | 'admin' | 'resp' | 'grpc' | 'gateway'

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

/** The settings that say where listeners listen. */
export type ListenSettings = Pick<Settings, 'host' | 'port' | 'admin' | 'resp' | 'grpc' | 'gateway'>

/** Ports of the listeners that the settings turn on. */
export function listenerPorts({ port, admin, resp, grpc, gateway }: ListenSettings): ListenerPorts {
  return {
    http: port,
    ...(admin && { admin: admin.port }),
    ...(resp && { resp: resp.port }),
    ...(grpc && { grpc: grpc.port }),
    ...(gateway && { gateway: gateway.port }),
  }
}

/** The address that a listener is bound to. */
export function listenerHost(name: ListenerName, settings: ListenSettings): string {
  return (name === 'http' ? undefined : settings[name]?.host) ?? settings.host
}

/** The settings that choose the port and the address of each listener. */
const ADDRESS_SETTINGS = {
  http: ['port', 'host'],
  admin: ['adminPort', 'adminHost'],
  resp: ['respPort', 'respHost'],
  grpc: ['grpcPort', 'grpcHost'],
  gateway: ['gatewayPort', 'gatewayHost'],
} as const satisfies Record<ListenerName, readonly SettingName[]>

/** What a client of a listener needs. `routes`: what each route says. */
export type ListenerAccess = 'none' | 'key' | 'certificate' | 'routes'

/** What clients of a listener need for checks, by the settings. A client certificate stands for a key. */
export function listenerAccess(
  name: Exclude<ListenerName, 'gateway'>,
  settings: Settings,
): Exclude<ListenerAccess, 'routes'>
export function listenerAccess(name: ListenerName, settings: Settings): ListenerAccess
export function listenerAccess(name: ListenerName, settings: Settings): ListenerAccess {
  if (name === 'gateway') return 'routes'
  const isHttp = name === 'http' || name === 'admin'
  const tls = isHttp ? settings.httpTls : settings[name]?.tls
  if (tls?.clientCa !== undefined) return 'certificate'
  const checkKey = (name === 'http' ? undefined : settings[name]?.checkKey) ?? settings.checkKey
  return checkKey ? 'key' : 'none'
}

const ACCESS_TEXTS: Readonly<Record<ListenerAccess, string>> = {
  none: 'no API key needed',
  key: 'API key needed',
  certificate: 'client certificate needed',
  routes: 'each route says who may call',
}

/** For people: what clients need. */
export function accessText(name: ListenerName, settings: Settings): string {
  return ACCESS_TEXTS[listenerAccess(name, settings)] + (name === 'admin' ? ' for checks' : '')
}

/** How a listener stands, for `/readyz`. A thread that answers has started all listeners. */
export function listenerHealth({ name, port, tls }: Listener, settings: Settings): HealthCheck {
  const host = listenerHost(name, settings)
  const place = port === undefined ? 'stopped' : `${host.includes(':') ? `[${host}]` : host}:${port}`
  const detail = `${place}; ${accessText(name, settings)}`
  return { name: `listener ${name}`, ready: true, detail, reasons: tls?.reasons ?? [] }
}

/** Where a server is to listen, with the variables of the settings that choose it. */
export interface ListenAttempt {
  readonly host: string
  readonly port: number
  readonly variables: { readonly port: string; readonly host: string }
}

/** Where a listener is to listen. `port`: that of the other threads, if they listen already. */
export function listenAttempt(name: ListenerName, settings: ListenSettings, port: number): ListenAttempt {
  const [portSetting, hostSetting] = ADDRESS_SETTINGS[name]
  const variables = { port: SETTING_TABLE[portSetting].variable, host: SETTING_TABLE[hostSetting].variable }
  return { host: listenerHost(name, settings), port, variables }
}

/** Listens; rejects with {@link listenError}. `sharesPort`: whether other threads listen on the same port. */
export function listen(
  server: Server,
  attempt: ListenAttempt,
  { sharesPort = false, onLater }: { readonly sharesPort?: boolean; readonly onLater: (error: Error) => void },
): Promise<void> {
  const { host, port } = attempt
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException): void => reject(listenError(error, attempt))
    server.once('error', onError)
    server.listen({ host, port, reusePort: sharesPort }, () => {
      server.off('error', onError)
      // Such as no file descriptors left for another connection: the server goes on with those it has.
      server.on('error', onLater)
      resolve()
    })
  })
}

const HIGHEST_PORT = 65_535

/** Says in the words of the settings why a server could not listen. */
export function listenError(cause: NodeJS.ErrnoException, { host, port, variables }: ListenAttempt): ServiceError {
  const received = `port ${port} on ${host}`
  switch (cause.code) {
    case 'EADDRINUSE':
      return new ServiceError('SLUICE_SERVICE_PORT_IN_USE', {
        received: `${received}, which something else listens on`,
        expected: 'a free port',
        action:
          'Stop the other program, or choose another port: ' +
          `${variables.port}=${port < HIGHEST_PORT ? port + 1 : 8080}`,
        cause,
      })
    case 'EACCES':
      return new ServiceError('SLUICE_SERVICE_PORT_FORBIDDEN', {
        received,
        expected: 'a port that this user may use, which below 1024 is often only root',
        action: `Choose a higher port: ${variables.port}=8080`,
        cause,
      })
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new ServiceError('SLUICE_SERVICE_HOST_UNAVAILABLE', {
        received: `${variables.host}=${host}`,
        expected: 'an address of this machine',
        action:
          `Use ${variables.host}=127.0.0.1 for this machine only, ` +
          `or ${variables.host}=0.0.0.0 for all its addresses.`,
        cause,
      })
    default:
      return new ServiceError('SLUICE_SERVICE_LISTEN_FAILED', {
        received: `${cause.message} for ${received}`,
        expected: 'to be able to listen there',
        action: `See the cause; ${variables.host} and ${variables.port} choose another place.`,
        cause,
      })
  }
}

/** Rejects with {@link listenError} if one of the ports cannot be listened on. They are free again when it resolves. */
export async function assertPortsFree(settings: ListenSettings): Promise<void> {
  for (const [name, port] of Object.entries(listenerPorts(settings))) {
    const probe = createServer()
    await listen(probe, listenAttempt(name as ListenerName, settings, port), { onLater: () => undefined })
    await new Promise((resolve) => probe.close(resolve))
  }
}
