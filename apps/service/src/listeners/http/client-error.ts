import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Answer } from '../../operations/answer.ts'
import { NO_SNIFF } from '../../operations/answer.ts'
import { problemAnswer } from '../../operations/problem-answer.ts'

const MALFORMED = problemAnswer('SLUICE_HTTP_MALFORMED', {
  detail: 'The bytes received are not an HTTP/1.1 request. Send one.',
})
const TIMEOUT = problemAnswer('SLUICE_HTTP_TIMEOUT', {
  detail: 'The request was not complete in time. Send it without pauses.',
})
const HEADERS_TOO_LARGE = problemAnswer('SLUICE_HTTP_HEADERS_TOO_LARGE', {
  detail: 'The headers are longer than is read. Send fewer.',
})

const TOO_MANY_CONNECTIONS = problemAnswer('SLUICE_HTTP_TOO_MANY_CONNECTIONS', {
  detail:
    'Too many connections from this address are open. Keep connections alive and reuse them; --max-connections-per-address and --trusted-proxies of the service raise the limit.',
  headers: { 'Retry-After': '1' },
})

/** Answers a connection that is one too many before it has sent anything, and closes it. Returns the status of the answer. */
export function rejectConnection(socket: Duplex): number {
  // Not `end`: what the client sends meanwhile must not become a request.
  socket.write(rawAnswer(TOO_MANY_CONNECTIONS), () => socket.destroy())
  return TOO_MANY_CONNECTIONS.status
}

/**
 * Answers what Node could not make a request of, and ends the connection: after broken bytes nobody knows where the next
 * request begins. Says the status of the answer; undefined when nobody is there to get one.
 */
export function answerClientError(error: NodeJS.ErrnoException, socket: Duplex): number | undefined {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return undefined
  }
  const answer = answerFor(error.code)
  socket.end(rawAnswer(answer), () => socket.destroy())
  return answer.status
}

function answerFor(code: string | undefined): Answer {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return TIMEOUT
  return code === 'HPE_HEADER_OVERFLOW' ? HEADERS_TOO_LARGE : MALFORMED
}

/** The bytes of an answer, for a connection that has no response object. */
function rawAnswer({ status, headers, body }: Answer): string {
  const lines = Object.entries({ ...headers, ...NO_SNIFF, Connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`
}
