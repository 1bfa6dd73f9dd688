import { hash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { GatewayConfig } from '@sluice/gateway'

/** The key of the demo. It opens nothing else, and everybody knows it. */
export const DEMO_KEY = 'demo'

/** What the gateway does while no routes are configured: all paths go to an upstream at `origin`. */
export function demoConfig(origin: string): GatewayConfig {
  return {
    gateway: { consumers: [{ name: 'demo', keys: [`sha256:${hash('sha256', DEMO_KEY)}`] }] },
    routes: [{ name: 'demo', match: { path: '/*' }, upstream: 'demo' }],
    upstreams: { demo: { instances: [{ url: origin }] } },
  }
}

/**
 * An upstream for those who have none yet. It answers every request with what reached it, so that a newcomer sees what
 * the gateway adds and removes. It listens on this machine only.
 */
export class DemoUpstream {
  readonly #server: Server

  constructor() {
    this.#server = createServer((request, response) => {
      const body = `${JSON.stringify(answerTo(request))}\n`
      response.setHeader('Content-Type', 'application/json')
      // A body must be read, or the connection cannot be used again.
      request.resume()
      request.once('end', () => response.end(body))
    })
  }

  /** Resolves with its origin. */
  async start(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeIdleConnections()
    await closed
  }
}

function answerTo({ method, url, headers }: IncomingMessage): Readonly<Record<string, unknown>> {
  return {
    message: 'This is the demo upstream of Sluice. Routes in sluice.yaml take its place.',
    method,
    path: url,
    user: headers['x-user-id'] ?? null,
    requestId: headers['x-request-id'] ?? null,
  }
}
