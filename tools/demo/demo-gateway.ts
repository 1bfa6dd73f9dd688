import { writeFileSync } from 'node:fs'
import type { Server } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

/** What stands behind the gateway of the demo. */
export interface DemoUpstreams {
  /** The configuration file with the routes to them. */
  readonly config: string
  close(): void
}

/** Longest time that an upstream takes to answer. */
const SLOWEST_MS = 40

/** Starts servers that stand for the services of a shop, and writes the routes to them into a file in `folder`. */
export async function startUpstreams(folder: string): Promise<DemoUpstreams> {
  const servers = await Promise.all(['catalogue', 'catalogue', 'orders', 'orders', 'site'].map(startServer))
  const [catalogue1, catalogue2, orders1, orders2, site] = servers.map((server) => ({ url: urlOf(server) }))
  const health = { active: { path: '/health', interval: '2s' } }
  const config = join(folder, 'sluice.yaml')
  const file = {
    routes: [
      { name: 'search', match: { path: '/api/v1/search', methods: ['GET'] }, upstream: 'catalogue' },
      { name: 'products', match: { path: '/api/v1/products/*' }, upstream: 'catalogue' },
      { name: 'orders', match: { path: '/api/v1/orders/*' }, upstream: 'orders' },
      { name: 'site', match: { path: '/*' }, upstream: 'site' },
    ],
    upstreams: {
      catalogue: { instances: [catalogue1, catalogue2], health },
      orders: { instances: [orders1, orders2], health },
      site: { instances: [site], health },
    },
  }
  // JSON is YAML.
  writeFileSync(config, JSON.stringify(file, undefined, 2))
  return {
    config,
    close: () => {
      for (const server of servers) {
        server.close()
        server.closeAllConnections()
      }
    },
  }
}

async function startServer(name: string): Promise<Server> {
  const server = createServer((request, response) => {
    const answer = (): void => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ service: name, path: request.url }))
    }
    if (request.url === '/health') answer()
    else setTimeout(answer, Math.random() * SLOWEST_MS)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

function urlOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
