import { expectTypeOf } from 'vitest'
import type { CheckAnswer } from '../checks/check-answer.ts'
import type { CheckRequest } from '../checks/check-request.ts'
import { CHECK_REQUEST } from '../checks/check-request.ts'
import type { ReservationAnswer } from '../checks/reservation-bodies.ts'
import type { NamedSchema } from '../schema/json-schema.ts'
import { answerSchema, choices } from '../schema/json-schema.ts'
import type { CallOf, PageCall } from './operation.ts'
import { operations, PAGE_PARAMETERS, query } from './operation.ts'
import type { Calls, Handlers, OperationId } from './operation-table.ts'

interface Thing {
  readonly name: string
  readonly size: number | null
  readonly parts?: readonly string[]
}

const description = 'd'
const name = { description, type: 'string' } as const
const size = { description, type: ['integer', 'null'] } as const
const parts = { description, type: 'array' } as const
const whole = { description, examples: [{ name: 'a', size: null }] } as const

export const right: NamedSchema<Thing> = answerSchema('Thing', {
  ...whole,
  required: { name, size },
  optional: { parts },
})

// @ts-expect-error a property is missing
export const missing: NamedSchema<Thing> = answerSchema('Thing', { ...whole, required: { name }, optional: { parts } })

// @ts-expect-error an optional property is missing
export const silent: NamedSchema<Thing> = answerSchema('Thing', { ...whole, required: { name, size } })

export const foreign: NamedSchema<Thing> = answerSchema('Thing', {
  ...whole,
  // @ts-expect-error the type has no such property
  required: { name, size, colour: name },
  optional: { parts },
})

export const misplaced: NamedSchema<Thing> = answerSchema('Thing', {
  ...whole,
  // @ts-expect-error it may be left out
  required: { name, size, parts },
})

export const mistyped: NamedSchema<Thing> = answerSchema('Thing', {
  ...whole,
  // @ts-expect-error a name is a text
  required: { name: { description, type: 'integer' }, size },
  optional: { parts },
})

export const badExample: NamedSchema<Thing> = answerSchema('Thing', {
  description,
  // @ts-expect-error a name is a text
  examples: [{ name: 1, size: null }],
  required: { name, size },
  optional: { parts },
})

interface Painted {
  readonly colour: 'red' | 'blue'
}

const painted = { description, examples: [{ colour: 'red' }] } as const

export const allColours: NamedSchema<Painted> = answerSchema('Painted', {
  ...painted,
  required: { colour: { description, enum: choices('red', 'blue') } },
})

export const fewColours: NamedSchema<Painted> = answerSchema('Painted', {
  ...painted,
  // @ts-expect-error a value of the type is not listed
  required: { colour: { description, enum: choices('red') } },
})

export const moreColours: NamedSchema<Painted> = answerSchema('Painted', {
  ...painted,
  // @ts-expect-error the type does not have a value that is listed
  required: { colour: { description, enum: choices('red', 'blue', 'green') } },
})

interface ThingCalls {
  readonly make: CallOf<{ readonly body: Thing }>
  readonly find: CallOf<{ readonly parameters: { readonly id: string } }>
}

const said = { role: 'none', summary: 's', description, answers: { 204: { description } } } as const
const id = { in: 'path', required: true, description, schema: { type: 'string' } } as const

operations<ThingCalls>('things', {
  make: { ...said, method: 'POST', path: '/things', body: right.ref },
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
