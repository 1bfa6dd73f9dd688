import { createHmac } from 'node:crypto'
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { keyDigest } from '@sluice/runtime'
import { ServiceError } from '../service-error.ts'

/** A receiver of notices. */
export interface Webhook {
  /** Names it without telling its address, which may be a secret. */
  readonly id: string
  readonly url: URL
  /** Scheme and host: what may be shown of its address. */
  readonly destination: string
  /** Signs what is sent; undefined when it is not signed. */
  readonly secret: string | undefined
}

/** What is posted. */
export interface WebhookPost {
  /** JSON. */
  readonly body: string
  readonly idempotencyKey: string
  /** Ends the try. */
  readonly signal: AbortSignal
  /** What else is said, such as the trace it belongs to. */
  readonly headers?: Readonly<Record<string, string>>
}

/** What is known of a try that failed. */
interface WebhookErrorDetails {
  readonly isFinal?: boolean
  readonly retryAfterMs?: number
  readonly status?: number
}

/** A try that failed. The message tells neither address nor body. */
export class WebhookError extends Error {
  override readonly name = 'WebhookError'
  /** Whether another try can help. */
  readonly isFinal: boolean
  /** The wait that the receiver asked for; undefined when it asked for none. */
  readonly retryAfterMs: number | undefined
  /** What it answered with; 0 when it did not. */
  readonly status: number

  constructor(message: string, { isFinal = false, retryAfterMs, status = 0 }: WebhookErrorDetails = {}) {
    super(message)
    this.isFinal = isFinal
    this.retryAfterMs = retryAfterMs
    this.status = status
  }
}

/** Bytes of an answer that are read. Nothing is done with them, but a receiver wants to have been heard. */
const MOST_ANSWER_BYTES = 65_536

/** Longer waits are not granted: an alert that comes hours later is none. */
const LONGEST_RETRY_AFTER_MS = 600_000

const MS_PER_SECOND = 1000

/** Answers that may be others the next time, of those that say that the request is at fault. */
const PASSING_CLIENT_ERRORS: ReadonlySet<number> = new Set([404, 408, 409, 421, 423, 425, 429])

/**
 * The receivers at these addresses, each once.
 *
 * @throws ServiceError `SLUICE_SERVICE_INVALID_SETTING` for an address that is none, or of another scheme than http and https
 */
export function webhooksOf(urls: readonly string[], secret: string | undefined): readonly Webhook[] {
  return [...new Set(urls)].map((text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined
    if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
      throw new ServiceError('SLUICE_SERVICE_INVALID_SETTING', {
        received: `${url === undefined ? 'no address' : `an address that begins with ${url.protocol}`} for the webhook of alerts`,
        expected: 'an address that begins with http:// or https://',
        action: 'Correct it, or leave it out: alerts are only listed then.',
      })
    }
    return { id: keyDigest(url.href), url, destination: url.origin, secret }
  })
}

/** The signature of a body: `sha256=` and the HMAC-SHA256 of its bytes in hexadecimal digits. */
function signatureOf(body: string, secret: string): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
}

/**
 * Posts to a webhook. Resolves with the status when it answered with one from 200 to 299 and the answer has come, or as much of it as is
 * read. Redirects are not followed. Rejects with a {@link WebhookError}, or with the reason of the signal when that aborts.
 */
export function postWebhook(webhook: Webhook, { body, idempotencyKey, signal, headers }: WebhookPost): Promise<number> {
  const { url, secret } = webhook
  return new Promise((resolve, reject) => {
    const send = url.protocol === 'https:' ? requestHttps : requestHttp
    const options = {
      method: 'POST',
      headers: {
        ...headers,
        'Content-Type': 'application/json',
        'Content-Length': String(Buffer.byteLength(body)),
        'User-Agent': 'sluice',
        'Idempotency-Key': idempotencyKey,
        ...(secret === undefined ? {} : { 'X-Sluice-Signature': signatureOf(body, secret) }),
      },
      // A connection for each: there are minutes between them.
      agent: false as const,
      signal,
    }
    const fail = (error: NodeJS.ErrnoException): void => reject(signal.aborted ? signal.reason : connectionError(error))
    const onResponse = (response: IncomingMessage): void => {
      response.on('error', fail)
      readAnswer(request, response, () => {
        const { statusCode = 0 } = response
        const refusal = refusalOf(statusCode, response.headers)
        if (refusal === undefined) resolve(statusCode)
        else reject(refusal)
      })
    }
    const request = send(url, options, onResponse)
    request.on('error', fail)
    request.end(body)
  })
}

/** Reads an answer up to a bound, and ends the connection. `done` is not called when it breaks off before. */
function readAnswer(request: ClientRequest, response: IncomingMessage, done: () => void): void {
  let bytes = 0
  const finish = (): void => {
    done()
    request.destroy()
  }
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > MOST_ANSWER_BYTES) finish()
  })
  response.on('end', finish)
}

function refusalOf(status: number, headers: IncomingHttpHeaders): WebhookError | undefined {
  if (status >= 200 && status <= 299) return undefined
  if (status >= 300 && status <= 399) {
    return new WebhookError(`answered with status ${status}: redirects are not followed, set the address it leads to`, {
      isFinal: true,
      status,
    })
  }
  const isFinal = status >= 400 && status <= 499 && !PASSING_CLIENT_ERRORS.has(status)
  const retryAfterMs = retryAfterOf(headers['retry-after'])
  return new WebhookError(`answered with status ${status}`, {
    isFinal,
    status,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  })
}

/** Only seconds: of a date nobody knows by which clock it was meant. */
function retryAfterOf(header: string | undefined): number | undefined {
  if (header === undefined || !/^\d{1,9}$/.test(header)) return undefined
  return Math.min(Number(header) * MS_PER_SECOND, LONGEST_RETRY_AFTER_MS)
}

/** The codes of Node are words such as ECONNREFUSED; its messages may have addresses in them. */
function connectionError({ code }: NodeJS.ErrnoException): WebhookError {
  return new WebhookError(`did not answer: ${code ?? 'the connection failed'}`)
}
