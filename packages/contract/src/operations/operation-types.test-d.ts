import { expectTypeOf } from 'vitest'
import type { CheckAnswer } from '../checks/check-answer-schema.ts'
import type { CheckRequest } from '../checks/check-request.ts'
import type { ReservationAnswer } from '../checks/reservation-bodies.ts'
import type { Infer } from '../schema/json-schema.ts'
import { answerSchema, ref } from '../schema/json-schema.ts'
import type { CallsOf } from './operation.ts'
import { operations, PAGE_PARAMETERS, pathPart } from './operation.ts'
import type { Calls, Handlers, OperationId } from './operation-table.ts'

const description = 'd'

const THING = answerSchema('Thing', {
  description,
  examples: [{ name: 'a' }],
  required: { name: { description, type: 'string' } },
})
interface Thing extends Infer<typeof THING> {}

const said = { role: 'none', summary: 's', description, answers: { 204: { description } } } as const

const things = operations('things', {
  make: { ...said, method: 'POST', path: '/things', body: ref<Thing>(THING) },
  find: {
    ...said,
    method: 'GET',
    path: '/things/{id}',
    parameters: { ...PAGE_PARAMETERS, id: pathPart('Its id.', { type: 'integer' }) },
    answers: {
      200: { description, schema: ref<Thing>(THING) },
      202: { description, schema: { type: 'string' } },
      204: { description },
    },
  },
})

type ThingCalls = CallsOf<typeof things>

expectTypeOf<ThingCalls['make']>().toEqualTypeOf<{
  readonly parameters: Record<never, never>
  readonly defaults: never
  readonly body: Thing
  readonly answer: undefined
}>()
expectTypeOf<ThingCalls['find']>().toEqualTypeOf<{
  readonly parameters: { readonly id: number; readonly after?: string; readonly limit?: number }
  readonly defaults: 'limit'
  readonly body: undefined
  readonly answer: Thing | string
}>()

// @ts-expect-error there is no such method
operations('things', { make: { ...said, method: 'PATCH', path: '/things' } })

// @ts-expect-error an operation has no such property
operations('things', { make: { ...said, method: 'POST', path: '/things', hasEtags: true } })

const answers = { 200: { description, header: [] } } as const

// @ts-expect-error an answer has no such property
operations('things', { make: { ...said, method: 'POST', path: '/things', answers } })

// @ts-expect-error an operation has a summary
operations('things', { make: { ...said, summary: undefined, method: 'POST', path: '/things' } })

expectTypeOf<Calls['check']['body']>().toEqualTypeOf<CheckRequest>()
expectTypeOf<Calls['reserve']['answer']>().toEqualTypeOf<CheckAnswer | ReservationAnswer>()
expectTypeOf<Calls['deleteOverride']['answer']>().toEqualTypeOf<undefined>()

interface Context {
  readonly caller: string
}

export const handlers: Handlers<Context, number, 'getVersion' | 'putTier'> = {
  getVersion: ({ parameters, caller }) => parameters.number + caller.length,
  putTier: async ({ parameters, body }) => parameters.name.length + (body.burst ?? 0),
}

export const decoded: Handlers<Context, number, 'listTiers' | 'check'> = {
  // The limit of a page has a default, so it is always there.
  listTiers: ({ parameters }) => parameters.limit,
  // The body of a check is what its reader makes of it.
  check: ({ body }) => body.request.tokens,
}

export const misread: Handlers<Context, number, 'getVersion'> = {
  // @ts-expect-error the number of a version is a number
  getVersion: ({ parameters }) => parameters.number.length,
}

// @ts-expect-error an operation has no handler
export const incomplete: Handlers<Context, number, 'getVersion' | 'putTier'> = { getVersion: () => 1 }

expectTypeOf<keyof Handlers<Context, number>>().toEqualTypeOf<OperationId>()
