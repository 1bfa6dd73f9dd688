import { STATUS_CODES } from 'node:http'
import { PROBLEM_MEDIA_TYPE } from '@sluice/contract'

/** An answer that the gateway gives itself. */
export interface GatewayAnswer {
  readonly status: number
  /** Names and values in turn. */
  readonly headers: readonly string[]
  readonly body: string
}

/** Every problem that the gateway answers with: status, last part of `type`, title. */
export const GATEWAY_PROBLEMS = {
  malformed: { status: 400, title: 'The request is not valid HTTP' },
  'invalid-target': { status: 400, title: 'The request target or the Host header cannot be used' },
  unauthorized: { status: 401, title: 'A valid credential is needed' },
  'not-found': { status: 404, title: 'No route takes this request' },
  'method-not-allowed': { status: 405, title: 'The method is not allowed' },
  timeout: { status: 408, title: 'The request did not arrive in time' },
  'too-large': { status: 413, title: 'The body is too large' },
  'expectation-failed': { status: 417, title: 'The Expect header is not supported' },
  'too-many-failures': { status: 429, title: 'Too many attempts with an invalid credential' },
  'headers-too-large': { status: 431, title: 'The headers are too large' },
  internal: { status: 500, title: 'The gateway failed' },
  'unknown-coding': { status: 501, title: 'The transfer coding of the body is not known' },
  'bad-gateway': { status: 502, title: 'The upstream did not answer correctly' },
  'limits-unavailable': { status: 503, title: 'Limits cannot be checked at the moment' },
  'credentials-unavailable': { status: 503, title: 'Credentials cannot be verified at the moment' },
  'upstream-unavailable': { status: 503, title: 'No instance of the upstream can take the request' },
  'too-many-connections': { status: 503, title: 'Too many connections' },
  'gateway-timeout': { status: 504, title: 'The upstream did not answer in time' },
} as const

export type GatewayProblem = keyof typeof GATEWAY_PROBLEMS

/** A problem document (RFC 9457) as an answer. `headers`: names and values in turn. */
export function problemAnswer(name: GatewayProblem, detail: string, headers: readonly string[] = []): GatewayAnswer {
  const { status, title } = GATEWAY_PROBLEMS[name]
  const body = JSON.stringify({ type: `urn:sluice:problem:${name}`, title, status, detail })
  return { status, headers: ['Content-Type', PROBLEM_MEDIA_TYPE, 'Cache-Control', 'no-store', ...headers], body }
}

/** The bytes of an answer, for a connection that has no response object. The connection closes after it. */
export function rawAnswer({ status, headers, body }: GatewayAnswer): string {
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`
  for (let index = 0; index < headers.length; index += 2) head += `${headers[index]}: ${headers[index + 1]}\r\n`
  return `${head}Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
}
