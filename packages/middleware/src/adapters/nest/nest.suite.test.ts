import 'reflect-metadata'
import { Readable } from 'node:stream'
import type { ArgumentsHost, ExceptionFilter, Type } from '@nestjs/common'
import { All, Catch, Controller, Module, Req, Res } from '@nestjs/common'
import type { AbstractHttpAdapter } from '@nestjs/core'
import { NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import type { MiddlewareHarness, ServedApp, SuiteAnswer } from '@sluice/testing'
import { middlewareSuite, SUITE_PATHS } from '@sluice/testing'
import { RateLimitModule } from './nest.ts'
import type { PlatformRequest } from './nest-exchange.ts'
import { RouteLimits } from './nest-route-limits.ts'

/** What is used of an answer, on either platform. */
interface Answer {
  readonly raw?: unknown
  status(code: number): Answer
  send(body: unknown): unknown
}

function send(response: Answer & NodeJS.WritableStream, { status, body }: SuiteAnswer): void {
  response.status(status)
  if (typeof body === 'string') response.send(body)
  else if (response.raw === undefined) Readable.from(body).pipe(response)
  else response.send(Readable.from(body))
}

function controllerOf(handle: ServedApp['handle']): Type {
  class Routes {
    async answer(request: PlatformRequest, response: Answer & NodeJS.WritableStream): Promise<void> {
      const path = new URL(request.url, 'http://localhost').pathname
      send(response, await handle({ path, decision: request.rateLimit }))
    }
  }
  Controller()(Routes)
  All([...SUITE_PATHS])(Routes.prototype, 'answer', Object.getOwnPropertyDescriptor(Routes.prototype, 'answer')!)
  Req()(Routes.prototype, 'answer', 0)
  Res()(Routes.prototype, 'answer', 1)
  return Routes
}

/** Thrown in place of the usual denial. */
class OwnDenial extends Error {
  readonly answer: SuiteAnswer

  constructor(answer: SuiteAnswer) {
    super('denied')
    this.answer = answer
  }
}

class OwnDenialFilter implements ExceptionFilter<OwnDenial> {
  static {
    Catch(OwnDenial)(OwnDenialFilter)
  }

  catch({ answer }: OwnDenial, host: ArgumentsHost): void {
    send(host.switchToHttp().getResponse(), answer)
  }
}

function harness(adapter: () => AbstractHttpAdapter): MiddlewareHarness {
  return {
    async serve({ limiters, onLimited, handle }) {
      const own = onLimited && {
        onLimited: (_: unknown, denial: Parameters<typeof onLimited>[0]) => new OwnDenial(onLimited(denial)),
      }
      class App {}
      Module({
        imports: limiters.map((options, index) =>
          RateLimitModule.forRoot({ ...options, ...(index === 0 ? own : undefined) }),
        ),
        controllers: [controllerOf(handle)],
      })(App)
      const app = await NestFactory.create(App, adapter(), {
        logger: false,
        abortOnError: false,
        forceCloseConnections: true,
      })
      app.useGlobalFilters(new OwnDenialFilter())
      await app.listen(0, '127.0.0.1')
      const limits = app.get(RouteLimits, { strict: false, each: true })
      const closeLimiters = async (): Promise<void> =>
        void (await Promise.all(limits.map((each) => each.onApplicationShutdown())))
      return { url: await app.getUrl(), closeLimiters, close: () => app.close() }
    },
  }
}

middlewareSuite(
  'Nest, on Express',
  harness(() => new ExpressAdapter()),
)
middlewareSuite(
  'Nest, on Fastify',
  harness(() => new FastifyAdapter()),
)
