import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Dispatcher } from 'undici'
import { problemAnswer } from '../http/problems.ts'
import { ResponseHeaders, type UpstreamHeaders } from '../http/response-headers.ts'
import type { ActiveConfig } from './active-config.ts'
import type { HttpIo } from './client-exchange.ts'
import type { ExchangeParts } from './exchange.ts'
import { HttpExchange } from './http-exchange.ts'
import { Tunnel } from './websocket/tunnel.ts'

const SWITCHING_PROTOCOLS = 101

/** Reason of a close frame. */
const GATEWAY_STOPS = 'the gateway stops'

const NO_WEBSOCKETS = problemAnswer('bad-gateway', 'The gateway opens no WebSockets to an upstream that speaks HTTP/2.')

/** A request and the connection that is to become a WebSocket. */
export interface UpgradeIo extends HttpIo {
  readonly socket: Socket
}

/**
 * A request to open a WebSocket. Until the upstream agrees it is a request like any other: routed, identified, limited;
 * any other response goes to the client, and its connection is closed afterwards.
 */
export class UpgradeExchange extends HttpExchange {
  readonly #socket: Socket
  #tunnel: Tunnel | undefined
  /** Whether the gateway stops: a tunnel that is opened all the same is closed at once. */
  #isLeaving = false

  constructor(parts: ExchangeParts, active: ActiveConfig, io: UpgradeIo) {
    super(parts, active, io)
    this.#socket = io.socket
  }

  override check(nowMs: number): void {
    if (this.#tunnel === undefined) super.check(nowMs)
    else if (nowMs - this.startedMs >= this.activeRoute!.route.timeouts.totalMs) {
      this.#tunnel.leave('the time limit of the route is over')
      this.#tunnel.check(nowMs)
    } else this.#tunnel.check(nowMs)
  }

  override leave(): void {
    this.#isLeaving = true
    this.#tunnel?.leave(GATEWAY_STOPS)
  }

  protected override forward(): void {
    const { route } = this.activeRoute!
    // A stream of HTTP/2 may become a WebSocket, with a handshake that clients of HTTP/1.1 do not know.
    if (this.active.config.upstreams.get(route.upstream)?.protocol === 'http2') this.answer(NO_WEBSOCKETS)
    else super.forward()
  }

  protected override get upgrade(): string | null {
    return 'websocket'
  }

  // biome-ignore lint/complexity/useMaxParams: undici calls it
  onRequestUpgrade(controller: Dispatcher.DispatchController, status: number, _headers: unknown, socket: Duplex): void {
    const client = this.#socket
    socket.on('error', () => undefined)
    if (this.isGone || status !== SWITCHING_PROTOCOLS) {
      socket.destroy()
      client.destroy()
      return
    }
    this.status = status
    const headers = new ResponseHeaders(controller.rawHeaders as UpstreamHeaders)
    if (this.outcome !== undefined) headers.addLimits(this.outcome.headers)
    headers.list.push('X-Request-Id', this.requestId, 'Connection', 'Upgrade', 'Upgrade', 'websocket')
    client.write(headText(headers.list), 'latin1')
    this.releaseResponse(client)
    this.upgraded()
    const { route, metrics } = this.activeRoute!
    this.#tunnel = new Tunnel({
      client,
      upstream: socket,
      rates: route.webSocket?.rates,
      admit: this.#admission(),
      idleMs: route.timeouts.idleMs,
      nowMs: this.parts.monotonicMs,
      onBytes: (fromClient, fromUpstream) => {
        this.bytesIn += fromClient
        this.bytesOut += fromUpstream
      },
      onDenied: () => metrics.denied.inc(),
      onEnd: () => this.upgradeOver(status),
    })
    if (this.#isLeaving) this.#tunnel.leave(GATEWAY_STOPS)
  }

  /** How messages are counted by the rules of the caller. Undefined without such rules. */
  #admission(): ((messages: number, bytes: number) => boolean | Promise<boolean>) | undefined {
    const { messageResource, byteResource } = this.activeRoute!.route.webSocket ?? {}
    if (messageResource === undefined && byteResource === undefined) return undefined
    const { messageLimits } = this.parts
    const take = (resource: string | undefined, units: number): boolean | Promise<boolean> =>
      resource === undefined || units === 0 || messageLimits.take(this.caller!, resource, units)
    return (messages, bytes) => {
      const answer = take(messageResource, messages)
      if (answer === false) return false
      return answer === true
        ? take(byteResource, bytes)
        : answer.then((isAllowed) => isAllowed && take(byteResource, bytes))
    }
  }
}

function headText(list: readonly string[]): string {
  let head = 'HTTP/1.1 101 Switching Protocols\r\n'
  for (let index = 0; index < list.length; index += 2) head += `${list[index]}: ${list[index + 1]}\r\n`
  return `${head}\r\n`
}
