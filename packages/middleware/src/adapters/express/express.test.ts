import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import type { MiddlewareHarness, SuiteAnswer } from '@sluice/testing'
import { middlewareSuite, SUITE_PATHS } from '@sluice/testing'
import type { ErrorRequestHandler, NextFunction, Request, Response } from 'express'
import express from 'express'
import { expect, it, onTestFinished } from 'vitest'
import { rateLimit, rateLimitOf } from './express.ts'

function send(response: Response, { status, body }: SuiteAnswer): void {
  response.status(status)
  if (typeof body === 'string') response.send(body)
  else Readable.from(body).pipe(response)
}

const answerError: ErrorRequestHandler = (_error: unknown, _request, response, _next) => {
  response.status(500).send('error')
}

const harness: MiddlewareHarness = {
  async serve({ limiters, onLimited, handle }) {
    const own = onLimited && {
      onLimited: (_request: Request, response: Response, _next: unknown, denial: { status: number; body: string }) =>
        send(response, onLimited(denial)),
    }
    const made = limiters.map((options, index) => rateLimit({ ...options, ...(index === 0 ? own : undefined) }))
    const app = express()
    for (const limiter of made) app.use(limiter)
    // Express 4 does not see the promise of a handler.
    app.all([...SUITE_PATHS], (request: Request, response: Response, next: NextFunction) => {
      const answer = Promise.resolve(handle({ path: request.path, decision: rateLimitOf(request) }))
      answer.then((given) => send(response, given)).catch(next)
    })
    app.use(answerError)
    const server = app.listen(0, '127.0.0.1')
    await new Promise((resolve) => void server.once('listening', resolve))
    const closeLimiters = async () => void (await Promise.all(made.map((limiter) => limiter.close())))
    return {
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      closeLimiters,
      async close() {
        server.closeAllConnections()
        await new Promise((resolve) => void server.close(resolve))
        await closeLimiters()
      },
    }
  },
}

middlewareSuite('Express', harness)

/** Serves an app until the test is over; the answer to a GET request. */
async function serve(app: express.Express): Promise<(path: string) => Promise<globalThis.Response>> {
  const server = app.listen(0, '127.0.0.1')
  await new Promise((resolve) => void server.once('listening', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => void server.close(resolve))
  })
  return (path) => fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`)
}

it('stands on a router or a route, whose pattern it may count by', async () => {
  const routes: (string | undefined)[] = []
  const limiter = rateLimit({
    limit: 1,
    window: '1h',
    key: (_request, { route }) => {
      routes.push(route)
      return route
    },
  })
  const router = express.Router()
  router.get('/:id', limiter, (request, response) => void response.json(rateLimitOf(request)))
  router.get('/:id/lines', limiter, (_request, response) => void response.send('lines'))
  const app = express()
  app.use('/orders', router)
  app.get('/free', (request, response) => void response.send(String(rateLimitOf(request))))
  const get = await serve(app)
  expect(await (await get('/orders/7')).json()).toMatchObject({ allowed: true, remaining: 0 })
  expect((await get('/orders/8')).status).toBe(429)
  expect((await get('/orders/7/lines')).status).toBe(200)
  expect(await (await get('/free')).text()).toBe('undefined')
  expect(routes).toEqual(['/orders/:id', '/orders/:id', '/orders/:id/lines'])
})

it('lets a denied request through when the app says so', async () => {
  const app = express()
  app.use(rateLimit({ limit: 0, window: '1h', onLimited: (_request, _response, next) => next() }))
  app.get('/ok', (request, response) => void response.status(200).send(String(rateLimitOf(request)?.allowed)))
  const answer = await (await serve(app))('/ok')
  expect(answer.status).toBe(200)
  expect(await answer.text()).toBe('false')
})

it.each([
  ['at once', () => fail()],
  ['later', () => Promise.resolve().then(fail)],
])('hands what onLimited throws to the error handler, %s', async (_when, onLimited) => {
  const app = express()
  app.use(rateLimit({ limit: 0, window: '1h', onLimited }))
  app.use(answerError)
  expect((await (await serve(app))('/ok')).status).toBe(500)
})

it('leaves a response alone that was started while the store decided', async () => {
  const errors: unknown[] = []
  const decided = Promise.withResolvers<undefined>()
  const begun = Promise.withResolvers<undefined>()
  const app = express()
  app.use(async (_request, response, next) => {
    next()
    response.status(200).write('begun')
    begun.resolve(undefined)
    await decided.promise
    for (let turn = 0; turn < 16; turn++) await undefined
    response.end(', ended')
  })
  const onDecision = () => decided.resolve(undefined)
  app.use(rateLimit({ limit: 0, window: '1h', key: () => begun.promise, onDecision }))
  app.use(((error: unknown, _request, _response, _next) => void errors.push(error)) satisfies ErrorRequestHandler)
  const answer = await (await serve(app))('/ok')
  expect(answer.status).toBe(200)
  expect(await answer.text()).toBe('begun, ended')
  expect(errors).toEqual([])
})

function fail(): never {
  throw new Error('thrown by onLimited, on purpose')
}
