import { AsyncLocalStorage } from 'node:async_hooks'
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import { FakeClock } from '@sluice/testing'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import { describe, expect, it, onTestFinished } from 'vitest'
import { rateLimit as expressLimit } from '../adapters/express/express.ts'
import { rateLimit as fastifyLimit } from '../adapters/fastify/fastify.ts'
import { rateLimit as koaLimit } from '../adapters/koa/koa.ts'

const LIMIT = 30
const options = { limit: LIMIT, window: '1h', clock: new FakeClock(), warn: () => undefined } as const

/** Who a request belongs to, as tracing and logging keep it. */
const context = new AsyncLocalStorage<string>()

/** Servers that answer with the path that the context of a request says. */
const SERVERS: Readonly<Record<string, () => Promise<Server>>> = {
  express: async () => {
    const app = express()
    app.use((request, _response, next) => context.run(request.url, next))
    app.use(expressLimit(options))
    // Another one, so that each request passes two.
    app.use(expressLimit({ ...options, name: 'second', limit: 1000 }))
    app.use((_request, response) => void response.send(context.getStore()))
    const server = app.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return server
  },
  fastify: async () => {
    const app = fastify()
    app.addHook('onRequest', (request, _reply, done) => context.run(request.url, done))
    await app.register(fastifyLimit, options)
    app.get('*', () => context.getStore())
    await app.listen({ host: '127.0.0.1', port: 0 })
    return app.server
  },
  koa: async () => {
    const app = new Koa()
    app.use((call, next) => context.run(call.url, next))
    app.use(koaLimit(options))
    app.use((call) => {
      call.body = context.getStore()
    })
    const server = app.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return server
  },
}

interface Answer {
  readonly status: number
  readonly body: string
}

/**
 * Sends requests in one piece, so that the server reads them in one turn, and gives the answers, which come in the same
 * order.
 */
async function askTogether(port: number, paths: readonly string[]): Promise<Answer[]> {
  const socket = connect(port, '127.0.0.1')
  socket.end(
    paths
      .map((path, index) => {
        const connection = index === paths.length - 1 ? 'Connection: close\r\n' : ''
        return `GET ${path} HTTP/1.1\r\nHost: here\r\n${connection}\r\n`
      })
      .join(''),
  )
  let text = ''
  for await (const piece of socket) text += String(piece)
  return text.split(/(?=HTTP\/1\.1 \d{3} )/).map((answer) => ({
    status: Number(answer.slice(9, 12)),
    body: answer.slice(answer.indexOf('\r\n\r\n') + 4),
  }))
}

describe.each(Object.entries(SERVERS))('a crowd before %s', (_name, start) => {
  it('is admitted exactly as far as the limit goes, each request in its own context', async () => {
    const server = await start()
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const answers: Answer[] = []
    // From the second time on they are held back and go on together.
    for (let time = 0; time < 4; time++) {
      const paths = Array.from({ length: 10 }, (_, index) => `/${time}/${index}`)
      const came = await askTogether(port, paths)
      const admitted = came.filter(({ status }) => status === 200)
      expect(admitted.map(({ body }) => body)).toEqual(paths.slice(0, admitted.length))
      answers.push(...came)
    }
    expect(answers.map(({ status }) => status)).toEqual([
      ...Array.from({ length: LIMIT }, () => 200),
      ...Array.from({ length: 10 }, () => 429),
    ])
  })
})
