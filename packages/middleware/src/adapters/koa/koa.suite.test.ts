import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import type { MiddlewareHarness, SuiteAnswer } from '@sluice/testing'
import { middlewareSuite, SUITE_PATHS } from '@sluice/testing'
import Koa, { type Context } from 'koa'
import { rateLimit } from './koa.ts'

function send(context: Context, { status, body }: SuiteAnswer): void {
  context.status = status
  context.body = typeof body === 'string' ? body : Readable.from(body)
}

const harness: MiddlewareHarness = {
  async serve({ limiters, onLimited, handle }) {
    const own = onLimited && {
      onLimited: (context: Context, denial: { status: number; body: string }) => send(context, onLimited(denial)),
    }
    const made = limiters.map((options, index) => rateLimit({ ...options, ...(index === 0 ? own : undefined) }))
    const app = new Koa()
    app.silent = true
    for (const limiter of made) app.use(limiter)
    app.use(async (context) => {
      if (SUITE_PATHS.every((path) => path !== context.path)) return
      send(context, await handle({ path: context.path, decision: context.state['rateLimit'] }))
    })
    const server = createServer(app.callback() as RequestListener).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const closeLimiters = async (): Promise<void> => void (await Promise.all(made.map((limiter) => limiter.close())))
    return {
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      closeLimiters,
      async close() {
        server.closeAllConnections()
        await new Promise((resolve) => server.close(resolve))
        await closeLimiters()
      },
    }
  },
}

middlewareSuite('Koa', harness)
