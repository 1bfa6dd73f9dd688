import type { Infer, JsonSchema, NamedSchema, Reference } from './json-schema.ts'
import { answerSchema } from './json-schema.ts'

/** The schema of a string. */
export interface TextSchema extends Omit<JsonSchema, 'type'> {
  readonly type: 'string'
}

/** The schema of an integer. */
export interface WholeSchema extends Omit<JsonSchema, 'type'> {
  readonly type: 'integer'
}

/** The schema of a boolean. */
export interface FlagSchema extends Omit<JsonSchema, 'type'> {
  readonly type: 'boolean'
}

/** The schema of a list of strings. */
export interface TextsSchema extends Omit<JsonSchema, 'type' | 'items'> {
  readonly type: 'array'
  readonly items: { readonly type: 'string' }
}

/** Maximum length of a note on a change, in characters. */
const LONGEST_NOTE = 1000

const LARGEST_INSTANT = 8_640_000_000_000_000

/** A string sent by a client: 1 to `longest` characters. No control characters, which would break log lines. */
export function text(description: string, longest: number): TextSchema {
  return {
    title: `a string of 1 to ${longest} characters and no control characters`,
    description,
    type: 'string',
    minLength: 1,
    maxLength: longest,
    pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f]*$',
  }
}

/** The address of a caller. */
export function address(description: string): TextSchema {
  return {
    title: 'an IPv4 or IPv6 address without port, brackets or zone',
    description,
    type: 'string',
    maxLength: 45,
    pattern: '^[0-9A-Fa-f.:]+$',
  }
}

/** A string of any length, in answers. */
export function words(description: string): TextSchema {
  return { description, type: 'string' }
}

/** An integer, 0 or more, in answers. */
export function count(description: string): WholeSchema {
  return { description, type: 'integer', minimum: 0 }
}

/** An integer in a range. */
export function whole(description: string, minimum: number, maximum: number): WholeSchema {
  return { description, type: 'integer', minimum, maximum }
}

/** An instant of the admin API: milliseconds since 1970. */
export function instant(description: string): WholeSchema {
  return {
    title: 'milliseconds since 1970',
    description: `${description} Milliseconds since 1970.`,
    type: 'integer',
    minimum: 0,
    maximum: LARGEST_INSTANT,
  }
}

/** A boolean. */
export function flag(description: string): FlagSchema {
  return { description, type: 'boolean' }
}

/** A list of strings, in answers. */
export function texts(description: string): TextsSchema {
  return { description, type: 'array', items: { type: 'string' } }
}

/** A named body as a property. `bodyOf<Failure>` shows its name in compiler messages. */
export function bodyOf<V>({ ref }: NamedSchema<V>, description: string): Reference<V> {
  return { ...ref, description }
}

/** The schema of a list of bodies. */
export interface ListSchema<V> extends Omit<JsonSchema, 'type' | 'items'> {
  readonly type: 'array'
  readonly items: Reference<V>
}

/** A list of named bodies. `listOf<Counter>` shows their name in compiler messages. */
export function listOf<V>(description: string, items: Reference<V>): ListSchema<V> {
  return { description, type: 'array', items }
}

/** A length of time such as `5m`. */
export function duration(description: string): TextSchema {
  return {
    title: 'a duration such as "250ms", "5m" or "1h30m"',
    description: `${description} Number and unit (ms, s, m, h, d, w), also several in a row.`,
    type: 'string',
    maxLength: 40,
    pattern: '^(?:[0-9]+(?:\\.[0-9]+)?\\s?(?:ms|s|m|h|d|w))+$',
  }
}

/** Reason of a change, written by its author. */
export const NOTE: TextSchema = text('Why, in your own words; it stands in the audit log.', LONGEST_NOTE)

/** The resource of a rule, an override or a query. */
export const RESOURCE: TextSchema = {
  title: 'a resource such as "/orders/:id", "/files/*", "*" or "checkout"',
  description:
    'What is called: a path, with :name for any one segment and /* at the end for all below; * for everything; or ' +
    'a name without a slash.',
  type: 'string',
  minLength: 1,
  maxLength: 2048,
}

/** The dimension of a rule. */
export const DIMENSION: TextSchema = {
  title:
    'a dimension such as "ip", "user", "apiKey", "tenant", "service", "global", a descriptor, or several joined by "+"',
  description:
    'Who is counted: ip, user, apiKey, tenant, service, global (all together), the name of a descriptor, or ' +
    'several joined by +.',
  type: 'string',
  pattern: '^[A-Za-z][A-Za-z0-9_.-]{0,63}(?:\\+[A-Za-z][A-Za-z0-9_.-]{0,63})*$',
}

/** One caller of a dimension. */
export const ENTITY: TextSchema = {
  description: 'Who, as requests name them: an id of a user, a key, a tenant, an address.',
  type: 'string',
  minLength: 1,
  maxLength: 4096,
}

/** The name of a tier, an exemption or an entry of the deny list. */
export function entryName(description: string): TextSchema {
  return {
    title: '1 to 64 letters, digits or any of _ . @ -, beginning with a letter or digit',
    description,
    type: 'string',
    pattern: '^[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}$',
  }
}

/** A part of a longer list. */
export interface Page<T> {
  readonly items: readonly T[]
  /** Pass it as `after` to get the next page; absent on the last one. */
  readonly next?: string
}

/** The schema of a page of `item`. */
export function pageSchema<T>(name: string, item: NamedSchema<T>): NamedSchema<Page<T>> {
  return answerSchema(name, {
    description: 'A part of a longer list.',
    examples: [{ items: [item.example], next: 'eyJhZnRlciI6MX0' }],
    required: { items: listOf('What is on this page.', item.ref) },
    optional: { next: words('Give it back as "after" for the next page; absent on the last.') },
  })
}

/** The schema of one problem of a request. */
export const FIELD_PROBLEM = answerSchema('FieldProblem', {
  description: 'One thing that is wrong with a request.',
  examples: [{ path: '/tokens', received: '-1', expected: 'a whole number from 0 to 1000000000' }],
  required: {
    path: words(
      'Where: a JSON Pointer into the body, such as /user; empty for the body itself; ? and the name for a parameter.',
    ),
    received: words('What is there, in words. The text of an identity or a key is never repeated.'),
    expected: words('What should be there.'),
  },
  optional: {
    line: {
      description: 'Line of the text that was sent, where it was a string of several lines.',
      type: 'integer',
      minimum: 1,
    },
  },
})
export interface FieldProblem extends Infer<typeof FIELD_PROBLEM> {}
