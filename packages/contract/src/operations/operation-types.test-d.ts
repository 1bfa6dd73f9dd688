import { expectTypeOf } from 'vitest'
import type { CheckAnswer } from '../checks/check-answer.ts'
import type { CheckRequest } from '../checks/check-request.ts'
import { CHECK_REQUEST } from '../checks/check-request.ts'
import type { ReservationAnswer } from '../checks/reservation-bodies.ts'
import type { NamedSchema } from '../schema/json-schema.ts'
import { answerSchema } from '../schema/json-schema.ts'
import type { CallOf } from './operation.ts'
import { operations } from './operation.ts'
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

export const misread: Handlers<Context, number, 'getVersion'> = {
  // @ts-expect-error the number of a version is a number
  getVersion: ({ parameters }) => parameters.number.length,
}

// @ts-expect-error an operation has no handler
export const incomplete: Handlers<Context, number, 'getVersion' | 'putTier'> = { getVersion: () => 1 }

expectTypeOf<keyof Handlers<Context, number>>().toEqualTypeOf<OperationId>()
