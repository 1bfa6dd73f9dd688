import type { CheckAnswer } from '@sluice/contract'
import { createClient } from 'redis'
import type { RunningNode } from '../service.fixture.ts'
import { failure, GrpcClient, SHOULD_RATE_LIMIT } from './grpc/grpc-client.test.support.ts'
import { enforceDomain, GRPC } from './grpc/grpc-node.test.support.ts'
import type { ListenerAnswer, ListenerCall, ListenerClient } from './listener.suite.test.support.ts'
import { LIMIT, listenerSuite } from './listener.suite.test.support.ts'

function httpClient({ origin }: RunningNode): ListenerClient {
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

listenerSuite('HTTP', { listener: 'http', settings: {}, connect: (node) => Promise.resolve(httpClient(node)) })

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
  peeksWithCost: false,
})
