import type { Socket } from 'node:net'
import type { Timers } from '@sluice/core'
import { type Cidr, CidrTable, parseIp } from '@sluice/core/internal'
import { ClientConnection, type ClientSocket, CONNECTION } from '../http/connection.ts'
import { problemAnswer, rawAnswer } from '../http/problems.ts'
import type { GatewayMetrics } from '../observability/gateway-metrics.ts'
import { acceptProxied } from '../tls/proxy-protocol.ts'

/** Bounds the connections of clients. */
export interface ConnectionLimit {
  /** Counts a connection. Returns what to call when it closes; undefined if there are too many. */
  open(address: string): (() => void) | undefined
}

/** Options of {@link ClientConnections}. */
export interface ClientConnectionsOptions {
  /** Open connections in all. */
  readonly mostConnections: number
  readonly connectionLimit: ConnectionLimit | undefined
  /** Networks whose connections begin with a header of the PROXY protocol. */
  readonly proxyProtocolFrom: () => readonly Cidr[]
  /** Longest wait for that header. */
  readonly headerMs: number
  readonly timers: Timers
  readonly metrics: () => GatewayMetrics
}

const TOO_MANY = rawAnswer(
  problemAnswer('too-many-connections', 'Too many connections are open. Keep connections alive and reuse them.', [
    'Retry-After',
    '1',
  ]),
)

/** The open connections of clients: counted, bounded, and with the address that a proxy before them tells. */
export class ClientConnections {
  readonly #options: ClientConnectionsOptions
  readonly #sockets = new Set<Socket>()
  /** By address and port of the peer, because a TLS socket does not tell which socket it is made of. */
  readonly #byPeer = new Map<string, ClientConnection>()
  #networks: { readonly of: readonly Cidr[]; readonly table: CidrTable<true> } | undefined

  constructor(options: ClientConnectionsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#sockets.size
  }

  /** Takes a socket in; calls `next` when bytes of the client follow. `isTls`: whether these are TLS. */
  accept(socket: ClientSocket, isTls: boolean, next: () => void): void {
    this.#sockets.add(socket)
    socket.once('close', () => void this.#sockets.delete(socket))
    if (this.#sockets.size > this.#options.mostConnections) this.#turnAway(socket, isTls)
    else if (this.#isProxied(socket.remoteAddress)) this.#acceptProxied(socket, isTls, next)
    else this.#opened(socket, new ClientConnection(socket.remoteAddress, isTls), next)
  }

  /** Gives a TLS socket the connection of the socket below it. */
  secured(socket: ClientSocket): void {
    const connection = this.#byPeer.get(peerOf(socket))
    if (connection !== undefined) socket[CONNECTION] = connection
  }

  /** Closes connections that have sent nothing. */
  destroySilent(): void {
    for (const socket of this.#sockets) if (socket.bytesRead === 0) socket.destroy()
  }

  destroyAll(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  #acceptProxied(socket: ClientSocket, isTls: boolean, next: () => void): void {
    const { timers, headerMs, metrics } = this.#options
    const cancel = timers.schedule(headerMs, () => socket.destroy())
    const ignore = (): void => void socket.destroy()
    socket.on('error', ignore)
    acceptProxied(socket, (header) => {
      cancel()
      socket.off('error', ignore)
      if (header !== 'invalid') {
        this.#opened(socket, new ClientConnection(header.address ?? socket.remoteAddress, isTls), next)
      } else if (!socket.destroyed) {
        metrics().rejected('proxy-protocol')
        socket.destroy()
      }
    })
  }

  #opened(socket: ClientSocket, connection: ClientConnection, next: () => void): void {
    const { connectionLimit } = this.#options
    const isTls = connection.scheme === 'https'
    const release = connectionLimit?.open(connection.peerAddress ?? '')
    if (connectionLimit !== undefined && release === undefined) {
      this.#turnAway(socket, isTls)
      return
    }
    socket[CONNECTION] = connection
    const peer = peerOf(socket)
    if (isTls) this.#byPeer.set(peer, connection)
    socket.once('close', () => {
      release?.()
      this.#byPeer.delete(peer)
    })
    next()
  }

  #turnAway(socket: Socket, isTls: boolean): void {
    this.#options.metrics().rejected('connections')
    socket.on('error', () => socket.destroy())
    if (isTls) socket.destroy()
    // Not `end`: what the client sends meanwhile must not become a request.
    else socket.write(TOO_MANY, () => socket.destroy())
  }

  #isProxied(address: string | undefined): boolean {
    const networks = this.#options.proxyProtocolFrom()
    if (networks.length === 0 || address === undefined) return false
    if (this.#networks?.of !== networks) {
      this.#networks = { of: networks, table: new CidrTable(networks.map((cidr) => ({ cidr, value: true }))) }
    }
    const parsed = parseIp(address)
    return parsed !== undefined && this.#networks.table.findBlock(parsed) !== undefined
  }
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress}|${remotePort}`
}
