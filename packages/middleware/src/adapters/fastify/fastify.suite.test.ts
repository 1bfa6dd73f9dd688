import { Readable } from 'node:stream'
import type { MiddlewareHarness, SuiteAnswer } from '@sluice/testing'
import { middlewareSuite, SUITE_PATHS } from '@sluice/testing'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { describe } from 'vitest'
import { type FastifyRateLimitOptions, rateLimit } from './fastify.ts'

function send(reply: FastifyReply, { status, body }: SuiteAnswer): FastifyReply {
  return reply.code(status).send(typeof body === 'string' ? body : Readable.from(body))
}

/** What the app will call when it closes: the limiters of the plugin end with it, and not before. */
function closersOf(app: FastifyInstance): (() => Promise<void>)[] {
  const closers: (() => Promise<void>)[] = []
  const addHook = app.addHook.bind(app) as (name: string, hook: () => Promise<void>) => FastifyInstance
  const watched = (name: string, hook: () => Promise<void>): FastifyInstance => {
    if (name === 'onClose') closers.push(hook)
    return addHook(name, hook)
  }
  return Object.assign(app, { addHook: watched }) && closers
}

function harness(hook: NonNullable<FastifyRateLimitOptions['hook']>): MiddlewareHarness {
  return {
    async serve({ limiters, onLimited, handle }) {
      const app = fastify({ forceCloseConnections: true })
      const closers = closersOf(app)
      const own = onLimited && {
        onLimited: (_: FastifyRequest, reply: FastifyReply, denial: { status: number; body: string }) =>
          void send(reply, onLimited(denial)),
      }
      for (const [index, options] of limiters.entries()) {
        await app.register(rateLimit, { ...options, hook, ...(index === 0 ? own : undefined) })
      }
      for (const path of SUITE_PATHS) {
        app.route({
          method: ['GET', 'OPTIONS'],
          url: path,
          handler: async (request, reply) => send(reply, await handle({ path, decision: request.rateLimit })),
        })
      }
      return {
        url: await app.listen({ host: '127.0.0.1', port: 0 }),
        closeLimiters: async () => void (await Promise.all(closers.map((close) => close()))),
        close: () => app.close(),
      }
    },
  }
}

describe.each(['onRequest', 'preValidation', 'preHandler'] as const)('%s', (hook) => {
  middlewareSuite('Fastify', harness(hook))
})
