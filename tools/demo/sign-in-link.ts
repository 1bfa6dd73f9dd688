import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { OPERATIONS } from '@sluice/contract'

/** Opens the dashboard signed in, once. */
export interface SignInLink {
  readonly url: string
  close(): void
}

/** What a link leads to. */
export interface SignInTarget {
  /** The origin of the service, with the host name `localhost`. */
  readonly url: string
  /** The key to sign in with. It stays in this process. */
  readonly apiKey: string
}

/**
 * A link that signs a browser of this machine in. The link has a random code that works once, and not the key: this
 * process exchanges the key for a session and hands over the cookie, which browsers send to all ports of `localhost`.
 * Only loopback is listened on, and only for this host name, so that no other site can lead here by its own name.
 * A code that was used leads to the dashboard, where one signs in with a key.
 */
export async function openSignInLink(target: SignInTarget): Promise<SignInLink> {
  let code: Buffer | undefined = randomBytes(16)
  const path = `/${code.toString('base64url')}`
  const server = createServer((request, response) => {
    const isMeant = isFromHere(request, server) && code !== undefined && isSame(request.url ?? '', path)
    if (isMeant) code = undefined
    answer(target, isMeant ? request : undefined, response).catch(() =>
      response.writeHead(502).end('The service does not answer.'),
    )
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://localhost:${port}${path}`, close: () => void server.close() }
}

/** `request`: the one to sign in; undefined for any other. */
async function answer(
  { url, apiKey }: SignInTarget,
  request: IncomingMessage | undefined,
  response: ServerResponse,
): Promise<void> {
  const headers: Record<string, string | string[]> = { location: `${url}/`, 'cache-control': 'no-store' }
  if (request !== undefined) {
    // The page of sessions tells browsers apart by what they call themselves.
    const browser = request.headers['user-agent'] ?? 'unknown'
    const signedIn = await fetch(new URL(OPERATIONS.signIn.path, url), {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'user-agent': browser },
      body: JSON.stringify({ apiKey }),
    })
    headers['set-cookie'] = signedIn.headers.getSetCookie()
  }
  response.writeHead(303, headers).end()
}

/** Whether a request names this host, and no page of another site made it. */
function isFromHere({ headers }: IncomingMessage, server: Server): boolean {
  const { port } = server.address() as AddressInfo
  const site = headers['sec-fetch-site']
  return headers.host === `localhost:${port}` && (site === undefined || site === 'none' || site === 'same-origin')
}

function isSame(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))
}
