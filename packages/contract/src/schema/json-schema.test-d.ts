import { expectTypeOf } from 'vitest'
import type { Infer, NamedSchema, ValueOf } from './json-schema.ts'
import { answerSchema } from './json-schema.ts'
import type { Page } from './value-schemas.ts'
import { bodyOf, count, flag, instant, listOf, pageSchema, texts, words } from './value-schemas.ts'

const description = 'd'

const PART = answerSchema('Part', { description, examples: [{ name: 'a' }], required: { name: words(description) } })
interface Part extends Infer<typeof PART> {}

const THING = answerSchema('Thing', {
  description,
  examples: [{ name: 'a', size: null, colour: 'red', parts: [PART.example], anything: 1 }],
  required: {
    name: words(description),
    size: { description, type: ['integer', 'null'] },
    colour: { description, enum: ['red', 'blue'] },
    parts: listOf<Part>(description, PART.ref),
    anything: { description },
  },
  optional: {
    limit: { description, anyOf: [{ type: 'number' }, { const: 'off' }] },
    labels: { description, type: 'object', additionalProperties: { type: 'string' } },
    tags: texts(description),
    isOpen: flag(description),
    since: instant(description),
    best: bodyOf<Part>(PART, description),
  },
})

expectTypeOf<Infer<typeof THING>>().toEqualTypeOf<{
  readonly name: string
  readonly size: number | null
  readonly colour: 'red' | 'blue'
  readonly parts: readonly Part[]
  readonly anything: unknown
  readonly limit?: number | 'off'
  readonly labels?: Readonly<Record<string, string>>
  readonly tags?: readonly string[]
  readonly isOpen?: boolean
  readonly since?: number
  readonly best?: Part
}>()

expectTypeOf<ValueOf<{ readonly type: 'object' }>>().toEqualTypeOf<object>()

const required = { name: words(description) }
const optional = { colour: { description, enum: ['red'] } } as const

// @ts-expect-error an example lacks a property
answerSchema('Lacking', { description, examples: [{}], required })

// @ts-expect-error an example has another type
answerSchema('Mistyped', { description, examples: [{ name: 1 }], required })

// @ts-expect-error an example has a value that is not listed
answerSchema('Unlisted', { description, examples: [{ name: 'a', colour: 'blue' }], required, optional })

// @ts-expect-error an example has a property that the schema does not have
answerSchema('Unknown', { description, examples: [{ name: 'a', size: 1 }], required, optional })

// @ts-expect-error there is no such type
answerSchema('Untyped', { description, examples: [{ name: 'a' }], required: { name: { type: 'text' } } })

// @ts-expect-error there is no such keyword
answerSchema('Misspelt', { description, examples: [{ a: 1 }], required: { a: { type: 'integer', minimun: 0 } } })

// @ts-expect-error a page of things is no page of parts
export const page: NamedSchema<Page<Part>> = pageSchema('Page', THING)

interface Counted {
  readonly count: number
}

const example = { count: 1 }

export const right: NamedSchema<Counted> = answerSchema('Counted', {
  description,
  examples: [example],
  required: { count: count(description) },
})

// @ts-expect-error the type lacks a property of the schema
export const unnamed: NamedSchema<Counted> = answerSchema('Counted', {
  description,
  examples: [{ ...example, name: 'a' }],
  required: { count: count(description), ...required },
})
