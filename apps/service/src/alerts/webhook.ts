import { createHmac } from 'node:crypto'
import { lookup } from 'node:dns'
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { LookupFunction } from 'node:net'
import type { Cidr } from '@sluice/core/internal'
import { CidrTable, parseCidr, parseIp } from '@sluice/core/internal'
import { keyDigest } from '@sluice/runtime'
import { ServiceError } from '../service-error.ts'
import type { WebhookSettings } from '../settings.ts'

/** A receiver of notices. */
export interface Webhook {
  /** Names it without telling its address, which may be a secret. */
  readonly id: string
  readonly url: URL
  /** Scheme and host: what may be shown of its address. */
  readonly destination: string
  readonly delivery: WebhookDelivery
}

/** How webhooks are sent, the same for all. */
export interface WebhookDelivery {
  /** The keys that sign them, the current one first; they are not signed when there is none. */
  readonly keys: readonly Uint8Array[]
  /** Addresses that they are never sent to. */
  readonly denied: CidrTable<true>
}

/** What is posted. */
export interface WebhookPost {
  /** Names the message: the same at every try. Must not have a full stop in it. */
  readonly id: string
  /** JSON: the same at every try. */
  readonly body: string
  /** When this try is made, in milliseconds since 1970. */
  readonly nowMs: number
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

const SECRET_PREFIX = 'whsec_'

/** Answers that may be others the next time, of those that say that the request is at fault. */
const PASSING_CLIENT_ERRORS: ReadonlySet<number> = new Set([404, 408, 409, 421, 423, 425, 429])

/** What the settings say about how webhooks are sent. */
export function webhookDelivery({ secrets, deniedTargets }: WebhookSettings): WebhookDelivery {
  return {
    keys: secrets.map((secret) => Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64')),
    // The settings were checked when they were read.
    denied: new CidrTable(deniedTargets.map((text) => ({ cidr: parseCidr(text) as Cidr, value: true }))),
  }
}

/**
 * The receivers at these addresses, each once.
 *
 * @throws ServiceError `SLUICE_SERVICE_INVALID_SETTING` for an address that is none, of another scheme than http and https, or
 * on the deny list
 */
export function webhooksOf(urls: readonly string[], delivery: WebhookDelivery): readonly Webhook[] {
  return [...new Set(urls)].map((text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined
    if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
      throw new ServiceError('SLUICE_SERVICE_INVALID_SETTING', {
        received: `${url === undefined ? 'no address' : `an address that begins with ${url.protocol}`} for a webhook`,
        expected: 'an address that begins with http:// or https://',
        action: 'Correct it, or leave it out.',
      })
    }
    if (isDenied(hostOf(url), delivery)) {
      throw new ServiceError('SLUICE_SERVICE_INVALID_SETTING', {
        received: `a webhook to ${hostOf(url)}, which --webhook-deny-list denies`,
        expected: 'an address that is not on the deny list',
        action: 'Correct the address, or set --webhook-deny-list to the networks that webhooks must not reach.',
      })
    }
    return { id: keyDigest(url.href), url, destination: url.origin, delivery }
  })
}

/** The host without the brackets of an IPv6 address. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}

/** Whether a host is an address on the deny list. A name is not: what it stands for is known when it is connected to. */
function isDenied(host: string, { denied }: WebhookDelivery): boolean {
  // A link-local address may come with its interface.
  const address = parseIp(host.replace(/%.*$/, ''))
  return address !== undefined && denied.find(address).length > 0
}

/**
 * Resolves names for connections, without addresses on the deny list. The connection is made to what this returns: there is no
 * second lookup that could give another address.
 */
function guardedLookup(delivery: WebhookDelivery): LookupFunction {
  return (hostname, options, done) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      const allowed = error === null ? addresses.filter(({ address }) => !isDenied(address, delivery)) : []
      const [first] = allowed
      if (error !== null) done(error, [])
      else if (first === undefined) done(new DeniedTargetError(), [])
      else if (options.all === true) done(null, allowed)
      else done(null, first.address, first.family)
    })
  }
}

/** All addresses of a name are on the deny list. */
class DeniedTargetError extends Error {}

/** Signatures as Standard Webhooks defines them: one for each key, with spaces between. */
function signaturesOf({ id, body }: WebhookPost, timestamp: number, keys: readonly Uint8Array[]): string {
  return keys
    .map((key) => `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`)
    .join(' ')
}

/**
 * Posts to a webhook. Resolves with the status when it answered with one from 200 to 299 and the answer has come, or as much of it as is
 * read. Redirects are not followed. Rejects with a {@link WebhookError}, or with the reason of the signal when that aborts.
 */
export function postWebhook({ url, delivery }: Webhook, post: WebhookPost): Promise<number> {
  const { id, body, signal, headers, nowMs } = post
  const timestamp = Math.floor(nowMs / MS_PER_SECOND)
  return new Promise((resolve, reject) => {
    const send = url.protocol === 'https:' ? requestHttps : requestHttp
    const options = {
      method: 'POST',
      headers: {
        ...headers,
        'Content-Type': 'application/json',
        'Content-Length': String(Buffer.byteLength(body)),
        'User-Agent': 'sluice',
        'webhook-id': id,
        'webhook-timestamp': String(timestamp),
        ...(delivery.keys.length === 0 ? {} : { 'webhook-signature': signaturesOf(post, timestamp, delivery.keys) }),
      },
      lookup: guardedLookup(delivery),
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
function connectionError(error: NodeJS.ErrnoException): WebhookError {
  const { code } = error
  if (error instanceof DeniedTargetError) {
    return new WebhookError('was not sent: all addresses of the host are on the deny list of webhooks', {
      isFinal: true,
    })
  }
  return new WebhookError(`did not answer: ${code ?? 'the connection failed'}`)
}
