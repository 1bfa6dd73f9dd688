import { expectTypeOf } from 'vitest'
import type { CheckAnswer } from '../checks/check-answer-schema.ts'
import type { CheckRequest } from '../checks/check-request.ts'
import { CHECK_REQUEST } from '../checks/check-request.ts'
import type { ReservationAnswer } from '../checks/reservation-bodies.ts'
import type { Infer } from '../schema/json-schema.ts'
import { answerSchema } from '../schema/json-schema.ts'
import type { CallOf, PageCall } from './operation.ts'
import { operations, PAGE_PARAMETERS, query } from './operation.ts'
import type { Calls, Handlers, OperationId } from './operation-table.ts'

const description = 'd'

const THING = answerSchema('Thing', {
  description,
  examples: [{ name: 'a' }],
  required: { name: { description, type: 'string' } },
})
interface Thing extends Infer<typeof THING> {}

interface ThingCalls {
  readonly make: CallOf<{ readonly body: Thing }>
  readonly find: CallOf<{ readonly parameters: { readonly id: string } }>
}

const said = { role: 'none', summary: 's', description, answers: { 204: { description } } } as const
const id = { in: 'path', required: true, description, schema: { type: 'string' } } as const

operations<ThingCalls>('things', {
  make: { ...said, method: 'POST', path: '/things', body: THING.ref },
  find: { ...said, method: 'GET', path: '/things/{id}', parameters: { id } },
})

operations<ThingCalls>('things', {
  // @ts-expect-error that is the body of something else
  make: { ...said, method: 'POST', path: '/things', body: CHECK_REQUEST.ref },
  // @ts-expect-error the parameter is not described
  find: { ...said, method: 'GET', path: '/things/{id}' },
})

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

operations<{ readonly find: CallOf<{ readonly answer: Thing }> }>('things', {
  find: {
    ...said,
    method: 'GET',
    path: '/things',
    // @ts-expect-error that is the answer of something else
    answers: { 200: { description, schema: CHECK_REQUEST.ref } },
  },
})

operations<{ readonly page: PageCall<{ readonly answer: Thing }> }>('things', {
  page: {
    ...said,
    method: 'GET',
    path: '/things',
    // @ts-expect-error the parameter has a default, which the schema does not state
    parameters: { ...PAGE_PARAMETERS, limit: query('How many.', { type: 'integer' }) },
  },
})

export const misread: Handlers<Context, number, 'getVersion'> = {
  // @ts-expect-error the number of a version is a number
  getVersion: ({ parameters }) => parameters.number.length,
}

// @ts-expect-error an operation has no handler
export const incomplete: Handlers<Context, number, 'getVersion' | 'putTier'> = { getVersion: () => 1 }

expectTypeOf<keyof Handlers<Context, number>>().toEqualTypeOf<OperationId>()
