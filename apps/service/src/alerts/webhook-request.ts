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
import type { WebhookSettings } from '../settings/settings.ts'

/** A receiver of webhooks. */
export interface Webhook {
  /** Identifies it without its URL, which may be a secret. */
  readonly id: string
  readonly url: URL
  /** Scheme and host: the public part of the URL. */
  readonly destination: string
  readonly delivery: WebhookDelivery
}

/** Signing and deny list, the same for all webhooks. */
export interface WebhookDelivery {
  /** Signing keys, the current one first. Without any, webhooks are not signed. */
  readonly keys: readonly Uint8Array[]
  /** Addresses that webhooks are never sent to. */
  readonly denied: CidrTable<true>
}

/** One delivery attempt. */
export interface WebhookPost {
  /** Id of the message: the same for every attempt. Without full stops. */
  readonly id: string
  /** JSON: the same for every attempt. */
  readonly body: string
  /** Time of this attempt, in milliseconds since 1970. */
  readonly nowMs: number
  /** Ends the attempt. */
  readonly signal: AbortSignal
  /** Further headers, such as trace context. */
  readonly headers?: Readonly<Record<string, string>>
}

interface WebhookErrorDetails {
  readonly isFinal?: boolean
  readonly retryAfterMs?: number
  readonly status?: number
}

/** A failed attempt. The message contains neither URL nor body. */
export class WebhookError extends Error {
  override readonly name = 'WebhookError'
  /** Whether retries are pointless. */
  readonly isFinal: boolean
  /** `Retry-After` of the receiver; undefined if it sent none. */
  readonly retryAfterMs: number | undefined
  /** Status of the response; 0 without one. */
  readonly status: number

  constructor(message: string, { isFinal = false, retryAfterMs, status = 0 }: WebhookErrorDetails = {}) {
    super(message)
    this.isFinal = isFinal
    this.retryAfterMs = retryAfterMs
    this.status = status
  }
}

/** Maximum number of response bytes to read before the connection is closed. */
const MAX_RESPONSE_BYTES = 65_536

/** Upper bound of `Retry-After`: an alert that arrives hours later is useless. */
const MAX_RETRY_AFTER_MS = 600_000

const MS_PER_SECOND = 1000

const SECRET_PREFIX = 'whsec_'

/** Client errors that may be temporary. */
const RETRYABLE_CLIENT_ERRORS: ReadonlySet<number> = new Set([404, 408, 409, 421, 423, 425, 429])

export function webhookDelivery({ secrets, deniedTargets }: WebhookSettings): WebhookDelivery {
  return {
    keys: secrets.map((secret) => Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64')),
    // `readSettings` has validated them.
    denied: new CidrTable(deniedTargets.map((text) => ({ cidr: parseCidr(text) as Cidr, value: true }))),
  }
}

/**
 * The receivers with these URLs, without duplicates.
 *
 * @throws ServiceError `SLUICE_SERVICE_INVALID_SETTING` for an invalid URL, a scheme other than http and https, or a
 * host on the deny list
 */
export function webhooksOf(urls: readonly string[], delivery: WebhookDelivery): readonly Webhook[] {
  return [...new Set(urls)].map((text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined
    if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
      throw new ServiceError('SLUICE_SERVICE_INVALID_SETTING', {
        received: url === undefined ? 'an invalid webhook URL' : `a webhook URL that begins with ${url.protocol}`,
        expected: 'a URL that begins with http:// or https://',
        action: 'Correct or remove it.',
      })
    }
    if (isDenied(hostOf(url), delivery)) {
      throw new ServiceError('SLUICE_SERVICE_INVALID_SETTING', {
        received: `a webhook to ${hostOf(url)}, which --webhook-deny-list denies`,
        expected: 'a host that is not on the deny list',
        action: 'Correct the URL, or set --webhook-deny-list to the networks that webhooks must not reach.',
      })
    }
    return { id: keyDigest(url.href), url, destination: url.origin, delivery }
  })
}

/** The host without the brackets of an IPv6 address. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}

/** Whether a host is an address on the deny list. Host names are checked after the lookup. */
function isDenied(host: string, { denied }: WebhookDelivery): boolean {
  // A link-local address may have a zone index.
  const address = parseIp(host.replace(/%.*$/, ''))
  return address !== undefined && denied.find(address).length > 0
}

/**
 * A DNS lookup without addresses on the deny list. The connection uses its result: there is no second lookup that could
 * return another address.
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

/** All addresses of a host are on the deny list. */
class DeniedTargetError extends Error {}

/**
 * Signatures of Standard Webhooks, one for each key, separated by spaces. The timestamp is signed, so receivers can
 * reject replays. Written here because it is one HMAC; the tests verify it with the package `standardwebhooks`.
 */
function signaturesOf({ id, body }: WebhookPost, timestamp: number, keys: readonly Uint8Array[]): string {
  return keys
    .map((key) => `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`)
    .join(' ')
}

/**
 * Posts to a webhook. Resolves with the status if it is 200 to 299. Redirects are not followed. Rejects with a
 * {@link WebhookError}, or with the reason of the signal if it aborts.
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
      // No keep-alive: webhooks are minutes apart.
      agent: false as const,
      signal,
    }
    const fail = (error: NodeJS.ErrnoException): void => reject(signal.aborted ? signal.reason : connectionError(error))
    const onResponse = (response: IncomingMessage): void => {
      response.on('error', fail)
      readResponse(request, response, () => {
        const { statusCode = 0 } = response
        const error = statusError(statusCode, response.headers)
        if (error === undefined) resolve(statusCode)
        else reject(error)
      })
    }
    const request = send(url, options, onResponse)
    request.on('error', fail)
    request.end(body)
  })
}

/** Reads a response up to a bound and closes the connection. `done` is not called if the response breaks off. */
function readResponse(request: ClientRequest, response: IncomingMessage, done: () => void): void {
  let bytes = 0
  const finish = (): void => {
    done()
    request.destroy()
  }
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > MAX_RESPONSE_BYTES) finish()
  })
  response.on('end', finish)
}

/** The error for a status outside 200 to 299. */
function statusError(status: number, headers: IncomingHttpHeaders): WebhookError | undefined {
  if (status >= 200 && status <= 299) return undefined
  if (status >= 300 && status <= 399) {
    return new WebhookError(`answered with status ${status}: redirects are not followed, set the URL it redirects to`, {
      isFinal: true,
      status,
    })
  }
  const isFinal = status >= 400 && status <= 499 && !RETRYABLE_CLIENT_ERRORS.has(status)
  const retryAfterMs = retryAfterOf(headers['retry-after'])
  return new WebhookError(`answered with status ${status}`, {
    isFinal,
    status,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  })
}

/** Only seconds: a date would depend on the clock of the receiver. */
function retryAfterOf(header: string | undefined): number | undefined {
  if (header === undefined || !/^\d{1,9}$/.test(header)) return undefined
  return Math.min(Number(header) * MS_PER_SECOND, MAX_RETRY_AFTER_MS)
}

/** Only the code, such as ECONNREFUSED: messages of Node may contain the address. */
function connectionError(error: NodeJS.ErrnoException): WebhookError {
  const { code } = error
  if (error instanceof DeniedTargetError) {
    return new WebhookError('was not sent: all addresses of the host are on the webhook deny list', {
      isFinal: true,
    })
  }
  return new WebhookError(`did not respond: ${code ?? 'the connection failed'}`)
}
