import { hash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CheckAnswer } from '@sluice/contract'
import { createClient } from 'redis'
import { afterAll, expect } from 'vitest'
import type { RunningNode } from '../service.fixture.ts'
import { failure, GrpcClient, SHOULD_RATE_LIMIT } from './grpc/grpc-client.test.support.ts'
import { enforceDomain, GRPC } from './grpc/grpc-node.test.support.ts'
import type { ListenerAnswer, ListenerCall, ListenerClient } from './listener.suite.test.support.ts'
import { LIMIT, listenerSuite } from './listener.suite.test.support.ts'

function httpClient(origin: string): ListenerClient {
  const post = (operation: string, body: string): Promise<Response> =>
    fetch(`${origin}/internal/ratelimit/${operation}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body,
    })
  const ask = async (operation: string, call: ListenerCall): Promise<ListenerAnswer> => {
    const response = await post(operation, JSON.stringify({ ...call, resource: '/suite' }))
    const { allowed, remaining } = (await response.json()) as CheckAnswer
    return { allowed, remaining }
  }
  return {
    check: (call) => ask('check', call),
    peek: (call) => ask('peek', call),
    mistakes: async () => {
      const bodies = ['{', '{}', '{"resource":"/suite","user":"a","tokens":-1}', '{"resource":"/suite","usr":"a"}']
      return await Promise.all(bodies.map(async (body) => await (await post('check', body)).text()))
    },
    close: () => Promise.resolve(),
  }
}

async function respClient({ respPort }: RunningNode): Promise<ListenerClient> {
  const client = createClient({ RESP: 2, socket: { port: respPort, host: '127.0.0.1', reconnectStrategy: false } })
  client.on('error', () => undefined)
  await client.connect()
  const send = async (...args: string[]): Promise<ReadonlyMap<unknown, unknown>> => {
    const reply = (await client.sendCommand(args)) as unknown as readonly unknown[]
    return new Map(
      Array.from({ length: reply.length / 2 }, (_, index) => [reply[2 * index], reply[2 * index + 1]] as const),
    )
  }
  const ask = async (name: string, { user, tokens = 1 }: ListenerCall): Promise<ListenerAnswer> => {
    const fields = await send(name, 'RESOURCE', '/suite', 'USER', user, 'COST', String(tokens))
    return { allowed: fields.get('allowed') === 1, remaining: fields.get('remaining') as number | null }
  }
  return {
    check: (call) => ask('SLUICE.CHECK', call),
    peek: (call) => ask('SLUICE.PEEK', call),
    mistakes: () =>
      Promise.all(
        [
          ['SLUICE.CHECK', 'RESOURCE'],
          ['SLUICE.CHECK', 'RESOURCE', '/suite', 'USER'],
          ['SLUICE.CHECK', 'RESOURCE', '/suite', 'USER', 'a', 'COST', '-1'],
          ['SLUICE.CHECK', 'RESOURCE', '/suite', 'USR', 'a'],
          ['SLUICE.CHEK', 'RESOURCE', '/suite'],
        ].map((args) =>
          send(...args).then(
            () => 'no error',
            (error: unknown) => `${(error as Error).message.replace('wrong number', 'expected another number')}`,
          ),
        ),
      ),
    close: () => {
      if (client.isOpen) client.destroy()
      return Promise.resolve()
    },
  }
}

/** One descriptor of the domain `suite`: the user of the call. */
function descriptorsOf({ user, tokens = 1 }: ListenerCall): object {
  return { domain: 'suite', descriptors: [{ entries: [{ key: 'user', value: user }], hitsAddend: { value: tokens } }] }
}

function grpcClient(node: RunningNode): ListenerClient {
  const client = new GrpcClient(node)
  const ask = async (call: ListenerCall): Promise<ListenerAnswer> => {
    const { overallCode, statuses } = await client.ask(descriptorsOf(call))
    // A limit that nothing is known about has no numbers.
    const [status] = statuses
    const isKnown = status?.currentLimit !== undefined
    const remaining = isKnown || overallCode !== 'OK' ? (status?.limitRemaining ?? 0) : null
    return { allowed: overallCode === 'OK', remaining }
  }
  return {
    check: ask,
    peek: ({ user }) => ask({ user, tokens: 0 }),
    mistakes: () =>
      Promise.all(
        [
          client.ask({ domain: '', descriptors: [] }),
          client.ask({ domain: 'suite', descriptors: [] }),
          client.ask({ domain: 'suite', descriptors: [{ entries: [] }] }),
          client.send(SHOULD_RATE_LIMIT, Buffer.from([0x0a, 0x7f])),
          client.send('/envoy.service.ratelimit.v3.RateLimitService/Other', Buffer.alloc(0)),
        ].map(async (call) => (await failure(call)).message),
      ),
    close: () => {
      client.close()
      return Promise.resolve()
    },
  }
}

const SUITE_DOMAIN = `
domain: suite
descriptors:
  - key: user
    rate_limit: { unit: hour, requests_per_unit: ${LIMIT} }
`

/** The headers that every protocol over HTTP answers with. */
async function answerOf(response: Response): Promise<ListenerAnswer> {
  await response.arrayBuffer()
  const allowed = response.status === 200
  // The gateway denies with 503 when limits cannot be checked.
  expect([200, 429, 503]).toContain(response.status)
  const remaining = response.headers.get('x-ratelimit-remaining')
  return { allowed, remaining: remaining === null && allowed ? null : Number(remaining) }
}

function forwardAuthClient({ origin }: RunningNode): ListenerClient {
  const headers = { 'X-Forwarded-Uri': '/suite?x=1', 'X-Forwarded-For': '192.0.2.1' }
  const ask = (given: Readonly<Record<string, string>>, query = ''): Promise<Response> =>
    fetch(`${origin}/internal/ratelimit/forward-auth${query}`, { headers: given })
  return {
    check: async ({ user }) => await answerOf(await ask({ ...headers, 'X-User': user })),
    peek: () => Promise.reject(new Error('Every call takes a unit.')),
    mistakes: async () => {
      const { 'X-Forwarded-Uri': _, ...noUri } = headers
      const asked = [ask({}), ask(noUri), ask({ ...headers, 'X-Forwarded-For': 'x' }), ask(headers, '?denyStatus=200')]
      return await Promise.all(asked.map(async (response) => await (await response).text()))
    },
    close: () => Promise.resolve(),
  }
}

/** Users of the suite. As API keys they are their own names. */
const USERS = ['a', 'b', ...Array.from({ length: 8 }, (_, index) => `u${index}`)]

/** A file whose gateway passes `/suite` on to an upstream that answers with nothing. */
async function gatewayFile(): Promise<string> {
  const upstream = createServer((_request, response) => void response.end())
  upstream.listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  const folder = await mkdtemp(join(tmpdir(), 'sluice-listeners-'))
  afterAll(async () => {
    upstream.closeAllConnections()
    upstream.close()
    await rm(folder, { recursive: true })
  })
  const keyOf = (user: string): string => `{ name: ${user}, keys: ["sha256:${hash('sha256', user)}"] }`
  const { port } = upstream.address() as AddressInfo
  const text = `
rules: [{ name: suite, resource: /suite, dimension: user, limit: ${LIMIT}, window: 1h }]
gateway: { consumers: [${USERS.map(keyOf).join(', ')}] }
routes: [{ name: suite, match: { path: /suite }, upstream: app, auth: required }]
upstreams: { app: { instances: [{ url: "http://127.0.0.1:${port}" }] } }
`
  const file = join(folder, 'sluice.yaml')
  await writeFile(file, text)
  return file
}

function gatewayClient({ gatewayPort }: RunningNode): ListenerClient {
  const ask = (path: string, headers: Readonly<Record<string, string>>): Promise<Response> =>
    fetch(`http://127.0.0.1:${gatewayPort}${path}`, { headers })
  return {
    check: async ({ user }) => await answerOf(await ask('/suite', { 'X-API-Key': user })),
    peek: () => Promise.reject(new Error('Every call takes a unit.')),
    mistakes: async () => {
      const asked = [ask('/suite', {}), ask('/suite', { 'X-API-Key': 'unknown' }), ask('/other', { 'X-API-Key': 'a' })]
      return await Promise.all(asked.map(async (response) => await (await response).text()))
    },
    close: () => Promise.resolve(),
  }
}

listenerSuite('HTTP', {
  listener: 'http',
  settings: {},
  connect: ({ origin }) => Promise.resolve(httpClient(origin)),
})

listenerSuite('admin', {
  listener: 'admin',
  settings: { admin: { port: 0 } },
  connect: ({ adminOrigin }) => Promise.resolve(httpClient(adminOrigin)),
})

listenerSuite('forward authentication of the HTTP', {
  listener: 'http',
  settings: { forwardAuthIdentity: { user: 'X-User' } },
  connect: (node) => Promise.resolve(forwardAuthClient(node)),
  takesCost: false,
  peeks: 'none',
})

listenerSuite('gateway', {
  listener: 'gateway',
  settings: { gateway: { port: 0, hasRoutes: true, isTls: false }, rulesFile: await gatewayFile() },
  connect: async (node) => {
    const client = gatewayClient(node)
    // It connects with its first call.
    await client.mistakes()
    return client
  },
  prepare: () => Promise.resolve(),
  takesCost: false,
  peeks: 'none',
  access: 'each route says who may call',
})

listenerSuite('RESP', { listener: 'resp', settings: { resp: { port: 0, tls: undefined } }, connect: respClient })

listenerSuite('gRPC', {
  listener: 'grpc',
  settings: GRPC,
  connect: async (node) => {
    const client = grpcClient(node)
    // It connects with its first call.
    await client.check({ user: 'unseen', tokens: 0 })
    return client
  },
  prepare: (node) => enforceDomain(node, SUITE_DOMAIN),
  overHttp: async (node, user) => {
    const body = JSON.stringify({ domain: 'suite', descriptors: [{ entries: [{ key: 'user', value: user }] }] })
    const headers = { 'Content-Type': 'application/json' }
    return (await fetch(`${node.origin}/json`, { method: 'POST', headers, body })).ok
  },
  peeks: 'free',
})
