import type { Clock } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'

/** What the access log tells of a request. */
export interface LoggedExchange {
  readonly requestId: string
  readonly method: string
  /** Target in origin form. Its query is not written. */
  readonly url: string
  readonly authority: string | undefined
  readonly httpVersion: string
  readonly status: number
  readonly bytesIn: number
  readonly bytesOut: number
  readonly attempts: number
  readonly instance: string | undefined
  readonly peerAddress: string | undefined
  readonly caller: { readonly ip: string | undefined; readonly user: string | undefined } | undefined
  readonly activeRoute: { readonly route: { readonly name: string } } | undefined
  readonly outcome: { readonly allowed: boolean; readonly decision: { readonly rule: string } | undefined } | undefined
  header(name: string): string | readonly string[] | undefined
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'] as const

const LONGEST_TEXT = 2048

// biome-ignore lint/suspicious/noControlCharactersInRegex: they would end a line, or hide one on a terminal
const UNSAFE = /["\\\u0000-\u001f\u007f-\u{10ffff}]/gu

/**
 * Writes a line for each request: as JSON, or in the combined format of web servers. Queries, credentials, cookies and
 * bodies are never written, because they hold secrets.
 */
export class AccessLog {
  readonly #clock: Clock
  readonly #writeLine: (line: string) => void
  #second = -1
  #combinedTime = ''

  constructor(clock: Clock, writeLine: (line: string) => void) {
    this.#clock = clock
    this.#writeLine = writeLine
  }

  write(exchange: LoggedExchange, durationMs: number, format: 'json' | 'combined'): void {
    const nowMs = Math.floor(this.#clock.nowMicros() / MICROS_PER_MS)
    this.#writeLine(format === 'json' ? jsonLine(exchange, nowMs, durationMs) : this.#combinedLine(exchange, nowMs))
  }

  #combinedLine(exchange: LoggedExchange, nowMs: number): string {
    const { caller, method, httpVersion, status, bytesOut } = exchange
    const client = caller?.ip ?? exchange.peerAddress ?? '-'
    const user = caller?.user === undefined ? '-' : quotable(caller.user).replaceAll(' ', '\\x20')
    const request = quotable(`${method} ${withoutQuery(exchange.url)} HTTP/${httpVersion}`)
    const referer = quotable(withoutQuery(textOf(exchange.header('referer')) ?? '-'))
    const agent = quotable(textOf(exchange.header('user-agent')) ?? '-')
    return `${client} - ${user} [${this.#timeOf(nowMs)}] "${request}" ${status} ${bytesOut} "${referer}" "${agent}"`
  }

  #timeOf(nowMs: number): string {
    const second = Math.floor(nowMs / 1000)
    if (second !== this.#second) {
      this.#second = second
      const iso = new Date(nowMs).toISOString()
      const month = MONTHS[Number(iso.slice(5, 7)) - 1]
      this.#combinedTime = `${iso.slice(8, 10)}/${month}/${iso.slice(0, 4)}:${iso.slice(11, 19)} +0000`
    }
    return this.#combinedTime
  }
}

function jsonLine(exchange: LoggedExchange, nowMs: number, durationMs: number): string {
  const { caller, outcome, activeRoute, status } = exchange
  return JSON.stringify({
    time: new Date(nowMs).toISOString(),
    requestId: exchange.requestId,
    client: caller?.ip ?? exchange.peerAddress,
    user: caller?.user,
    route: activeRoute?.route.name,
    method: exchange.method,
    host: exchange.authority,
    path: withoutQuery(exchange.url),
    protocol: `HTTP/${exchange.httpVersion}`,
    status,
    durationMs: Math.round(durationMs * 1000) / 1000,
    bytesIn: exchange.bytesIn,
    bytesOut: exchange.bytesOut,
    instance: exchange.instance,
    retries: exchange.attempts > 1 ? exchange.attempts - 1 : undefined,
    deniedBy: outcome?.allowed === false ? outcome.decision?.rule : undefined,
  })
}

function withoutQuery(url: string): string {
  const end = url.search(/[?#]/)
  const path = end < 0 ? url : url.slice(0, end)
  return path.length > LONGEST_TEXT ? path.slice(0, LONGEST_TEXT) : path
}

function textOf(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'object' ? value.join(', ') : value
}

/** As nginx writes it: nothing in a string can end it or the line. */
function quotable(text: string): string {
  const short = text.length > LONGEST_TEXT ? text.slice(0, LONGEST_TEXT) : text
  return short.replace(UNSAFE, (unsafe) => {
    // Headers are bytes, one for each character.
    const bytes = unsafe.charCodeAt(0) <= 0xff ? Buffer.from(unsafe, 'latin1') : Buffer.from(unsafe)
    return Array.from(bytes, (byte) => `\\x${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')
  })
}
