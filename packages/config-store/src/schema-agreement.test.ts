import { readFileSync } from 'node:fs'
import { type JsonSchema, RULE_SET_FILE_SCHEMA, RULE_SET_SCHEMA, SchemaCheck } from '@sluice/core/internal'
import type { ValidateFunction } from 'ajv/dist/2020.js'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

/** A schema, and the parts of it that documents are checked by. */
interface Subject {
  readonly name: string
  readonly schema: JsonSchema
  readonly part: string
}

/** What editors read: it has the parts of the service and of the gateway too. */
const PUBLISHED = JSON.parse(readFileSync(new URL('../sluice.schema.json', import.meta.url), 'utf8')) as JsonSchema

const SUBJECTS: readonly Subject[] = [
  ...['properties/upstreams', '$defs/route', '$defs/routeMatch', '$defs/upstream'].map((part) => ({
    name: `${part} as published`,
    schema: PUBLISHED,
    part: `#/${part}`,
  })),
  { name: 'a rule set in a file', schema: RULE_SET_FILE_SCHEMA, part: '#' },
  { name: 'a rule set', schema: RULE_SET_SCHEMA, part: '#' },
  ...['duration', 'entity', 'rule', 'match', 'errorRate', 'override', 'membership', 'block', 'incident', 'domain'].map(
    (name) => ({
      name,
      schema: RULE_SET_SCHEMA,
      part: `#/$defs/${name}`,
    }),
  ),
]

function reference({ schema, part }: Subject): ValidateFunction {
  // Branches that only say which properties are needed have no type of their own, which is no mistake.
  const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false })
  ajv.addSchema(schema, 'schema')
  return ajv.getSchema(`schema${part}`)!
}

/** Documents that a schema says are valid. */
function documents(root: JsonSchema, part: string): fc.Arbitrary<unknown> {
  const at = (pointer: string) =>
    pointer
      .split('/')
      .slice(1)
      .reduce((place, name) => (place as unknown as Record<string, JsonSchema>)[name]!, root)

  function made(schema: JsonSchema, depth: number): fc.Arbitrary<unknown> {
    if (schema.$ref !== undefined) return made(at(schema.$ref), depth)
    const isLast = depth > 9
    if (schema.const !== undefined) return fc.constant(schema.const)
    if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
    if (schema.examples !== undefined && isLast) return fc.constantFrom(...schema.examples)
    if (schema.type === 'object' || schema.properties !== undefined) return objectOf(schema, depth)
    if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map((branch) => made(branch, depth)))
    if (schema.type === 'array') return listOf(schema, depth, isLast)
    return scalarOf(schema)
  }

  function objectOf(schema: JsonSchema, depth: number): fc.Arbitrary<unknown> {
    const branches = schema.anyOf?.map((branch) => (branch.$ref === undefined ? branch : at(branch.$ref))) ?? [{}]
    // Properties come in pairs where one asks for the other.
    const together = Object.keys(schema.dependentRequired ?? {})
    return fc.oneof(
      ...branches.map((branch) => {
        if (schema.properties === undefined && schema.anyOf !== undefined) return made(branch, depth)
        const properties = Object.entries({ ...schema.properties, ...branch.properties }).filter(
          (entry): entry is [string, JsonSchema] => entry[1] !== false && !together.includes(entry[0]),
        )
        const model = Object.fromEntries(properties.map(([name, one]) => [name, made(one, depth + 1)]))
        const requiredKeys = [...(schema.required ?? []), ...(branch.required ?? [])]
        const pair = fc.record(
          Object.fromEntries(together.map((name) => [name, made(schema.properties![name] as JsonSchema, depth + 1)])),
        )
        const known = fc
          .tuple(fc.record(model, { requiredKeys }), together.length > 0 ? fc.option(pair) : fc.constant(null))
          .map(([one, other]) => ({ ...one, ...other }))
          .filter((one) => Object.keys(one).length >= (schema.minProperties ?? 0))
        if (typeof schema.additionalProperties !== 'object') return known
        const { propertyNames } = schema
        const names =
          propertyNames?.$ref === undefined ? fc.string({ minLength: 1, maxLength: 8 }) : made(propertyNames, depth)
        return fc.dictionary(names as fc.Arbitrary<string>, made(schema.additionalProperties, depth + 1))
      }),
    )
  }

  function listOf({ items = {}, minItems = 0, uniqueItems }: JsonSchema, depth: number, isLast: boolean) {
    const entry = made(items, depth + 1)
    const maxLength = Math.max(minItems, isLast ? 0 : 2)
    return uniqueItems
      ? fc.uniqueArray(entry, { minLength: minItems, maxLength: Math.max(1, maxLength) })
      : fc.array(entry, { minLength: minItems, maxLength })
  }

  function scalarOf(schema: JsonSchema): fc.Arbitrary<unknown> {
    const examples = schema.examples === undefined ? [] : [fc.constantFrom(...schema.examples)]
    if (schema.type === 'boolean') return fc.boolean()
    if (schema.type === 'string') {
      if (schema.pattern !== undefined) return fc.oneof(...examples)
      return fc.oneof(...examples, fc.string({ unit: 'binary', minLength: schema.minLength ?? 0, maxLength: 6 }))
    }
    const { minimum = 1, maximum = 1_000_000 } = schema
    if (schema.type === 'integer') return fc.oneof(...examples, fc.integer({ min: minimum, max: maximum }))
    return fc.oneof(...examples, fc.constantFrom(schema.exclusiveMaximum === undefined ? maximum : 0.5))
  }

  return made(at(part), 0)
}

/** What is put in the place of something, or beside it. */
const STRANGE: readonly unknown[] = [
  ...[null, true, false, 0, -0, 1, -1, 0.5, 1.5, 100, 101, 1e-9, 5e-10, 9e9, 9_000_000_001, 1e300, 4_294_967_296],
  ...[
    '',
    ' ',
    'x',
    'off',
    'gcra',
    'hybrid',
    '1m',
    '1',
    '1y',
    '24:00',
    '24:01',
    'GET',
    'G T',
    '2026-12-31',
    'a'.repeat(97),
  ],
  ...['*', 'user', 'user+', 'global', 'tier:x', '\ud83d', '👩‍👩‍👧'.repeat(600), 'x'.repeat(5000)],
  ...[[], {}, [1], ['GET', 'GET'], [null], [[]], { limit: 1, window: '1m' }, { calendar: 'day' }, { unlimited: true }],
]

const STRANGE_NAMES = [
  'x',
  '',
  'limit',
  'windows',
  'window',
  'algorithm',
  'burst',
  '__proto__',
  'constructor',
  'unit',
  'a/b~',
]

/** A step that changes something in a document: which of its places, what is done there, and with what. */
interface Mutation {
  readonly place: number
  readonly kind: 'replace' | 'remove' | 'rename' | 'add' | 'repeat'
  readonly value: unknown
  readonly name: string
}

const mutations: fc.Arbitrary<Mutation> = fc.record({
  place: fc.nat(1_000_000),
  kind: fc.constantFrom('replace', 'remove', 'rename', 'add', 'repeat'),
  value: fc.constantFrom(...STRANGE),
  name: fc.constantFrom(...STRANGE_NAMES),
})

type Holder = Record<string, unknown>

/** Every place of a document: what holds it, and its name there. */
function placesIn(holder: Holder): [Holder, string][] {
  return Object.keys(holder).flatMap((name): [Holder, string][] => {
    const part = holder[name]
    return [[holder, name], ...(typeof part === 'object' && part !== null ? placesIn(part as Holder) : [])]
  })
}

function put(holder: Holder, name: string, value: unknown): void {
  Object.defineProperty(holder, name, { value, enumerable: true, configurable: true, writable: true })
}

/** A copy of the document with one thing changed. */
function mutated(document: unknown, { place, kind, value, name }: Mutation): unknown {
  const whole: Holder = { document: structuredClone(document) }
  const places = placesIn(whole)
  const [holder, at] = places[place % places.length]!
  const part = holder[at]
  if (kind === 'repeat' && Array.isArray(part) && part.length > 0) part.push(...Array(place % 20).fill(part[0]))
  else if (kind === 'add' && Array.isArray(part)) part.push(value)
  else if (kind === 'add' && typeof part === 'object' && part !== null) put(part as Holder, name, value)
  else if (kind === 'rename' && !Array.isArray(holder) && holder !== whole) {
    Reflect.deleteProperty(holder, at)
    put(holder, name, part)
  } else if (kind === 'remove' && holder !== whole) {
    if (Array.isArray(holder)) holder.splice(Number(at), 1)
    else Reflect.deleteProperty(holder, at)
  } else put(holder, at, value)
  return whole['document']
}

describe.each(SUBJECTS)('$name, checked here and by ajv', (subject) => {
  const check = new SchemaCheck(subject.schema)
  const validate = reference(subject)
  const made = documents(subject.schema, subject.part)

  it('is valid for both when it is made by the schema', () => {
    fc.assert(
      fc.property(made, (document) => {
        expect(check.problemsOf(document, subject.part)).toEqual([])
        expect(validate(document)).toBe(true)
      }),
      { numRuns: 300 },
    )
  })

  it('is valid for both or for none when one thing in it is changed', () => {
    const verdicts = { valid: 0, invalid: 0 }
    fc.assert(
      fc.property(made, mutations, (document, mutation) => {
        const changed = mutated(document, mutation)
        const isValid = validate(changed)
        verdicts[isValid ? 'valid' : 'invalid']++
        expect({ isValid: check.problemsOf(changed, subject.part).length === 0, changed }).toEqual({ isValid, changed })
      }),
      { numRuns: 1500 },
    )
    // Else the documents are too dull to say anything.
    expect(Math.min(verdicts.valid, verdicts.invalid)).toBeGreaterThan(50)
  })
})
