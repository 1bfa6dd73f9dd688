import type { ExecutionContext } from '@nestjs/common'
import type { Request, Response } from 'express'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { expectTypeOf } from 'vitest'
import type { NestRateLimitOptions } from './nest.ts'
import { RateLimit, RateLimitModule } from './nest.ts'

declare const onExpress: { request: Request; response: Response }
declare const onFastify: { request: FastifyRequest; response: FastifyReply }

RateLimitModule.forRoot({ limit: 100, window: '1m' })
RateLimitModule.forRoot({ limit: 100, window: '1m', exchange: () => onExpress })
RateLimitModule.forRoot({ limit: 100, window: '1m', exchange: () => onFastify })

// What a factory is injected with is for the factory to say.
RateLimitModule.forRootAsync({ inject: ['limit'], useFactory: (limit: number) => ({ limit, window: '1m' }) })

// A route has no say in which routes are guarded.
// @ts-expect-error: there is no such option
RateLimit({ limit: 5, window: '1s', routes: 'all' })

expectTypeOf<NestRateLimitOptions['skip']>().exclude<undefined>().parameter(0).toEqualTypeOf<ExecutionContext>()
