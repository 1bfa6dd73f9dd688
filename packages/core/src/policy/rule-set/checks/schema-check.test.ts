import { describe, expect, it } from 'vitest'
import type { JsonSchema } from '../schema/rule-set-json-schema.ts'
import { pointerTo, SchemaCheck } from './schema-check.ts'

function told(schema: JsonSchema, value: unknown): string[] {
  return new SchemaCheck(schema).problemsOf(value).map((one) => `${one.path}: ${one.received} / ${one.expected}`)
}

const wholePart: JsonSchema = { type: 'integer', minimum: 1, maximum: 9 }

const pet: JsonSchema = {
  type: 'object',
  properties: {
    name: { type: 'string', minLength: 1 },
    legs: wholePart,
    colour: { enum: ['black', 'white'] },
  },
  required: ['name'],
  additionalProperties: false,
}

/** Two kinds of things, distinguished by a word; the second is meant when there is none. */
const shapes: JsonSchema = {
  type: 'object',
  anyOf: [
    {
      type: 'object',
      properties: { name: { $ref: '#/$defs/name' }, kind: { const: 'circle' }, radius: { type: 'number' } },
      required: ['name', 'kind', 'radius'],
      additionalProperties: false,
    },
    {
      type: 'object',
      properties: { name: { $ref: '#/$defs/name' }, kind: { const: 'square' }, side: { type: 'number' } },
      required: ['name', 'side'],
      additionalProperties: false,
    },
  ],
  $defs: { name: { title: 'a name', type: 'string' } },
}

const oneOrSeveral: JsonSchema = {
  title: 'either "one", or "several"',
  type: 'object',
  properties: { one: { type: 'integer' }, two: { type: 'integer' }, several: { type: 'array' }, other: {} },
  anyOf: [
    { required: ['one', 'two'], properties: { several: false } },
    { required: ['several'], properties: { one: false, two: false } },
  ],
}

describe('a document is checked by a schema', () => {
  it.each<[string, JsonSchema, unknown]>([
    ['an object', pet, { name: 'Rex', legs: 4, colour: 'black' }],
    ['a property that is undefined counts as left out', pet, { name: 'Rex', legs: undefined }],
    ['any kind without a type', {}, null],
    ['a whole number as a number', { type: 'number' }, 5],
    ['a length in characters, not in code units', { type: 'string', maxLength: 2 }, '👍👍'],
    ['one of several kinds', { anyOf: [{ type: 'string' }, wholePart] }, 7],
    ['the branch that its word names', shapes, { name: 'a', kind: 'circle', radius: 1.5 }],
    ['the branch without a word', shapes, { name: 'a', side: 2 }],
    [
      'a branch that was not the first guess',
      { anyOf: [{ required: ['a'], properties: { a: wholePart } }, { properties: { b: wholePart } }] },
      { a: 0 },
    ],
    ['further properties by one schema', { additionalProperties: wholePart }, { a: 1, b: 2 }],
  ])('%s', (_, schema, value) => {
    expect(told(schema, value)).toEqual([])
  })

  it.each<[string, JsonSchema, unknown, string[]]>([
    ['another kind', pet, 5, [': 5 / an object']],
    ['null', pet, null, [': null / an object']],
    ['a list for an object', pet, [], [': an empty list / an object']],
    ['a number that no document can hold', { type: 'number' }, Number.NaN, [': NaN / a number']],
    ['a function', {}, () => 1, [': a function / plain data']],
    ['a fraction for a whole number', wholePart, 1.5, [': 1.5 / a whole number from 1 to 9']],
    ['too little', wholePart, 0, [': 0 / a whole number from 1 to 9']],
    ['too much', wholePart, 10, [': 10 / a whole number from 1 to 9']],
    [
      'at a bound that is left out',
      { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 1 },
      1,
      [': 1 / a number, above 0 and below 1'],
    ],
    ['too short', pet, { name: '' }, ['/name: "" / a non-empty string']],
    ['too long', { type: 'string', maxLength: 2 }, 'abc', [': "abc" / a string of 0 to 2 characters']],
    ['a string by its expression', { title: 'a time', type: 'string', pattern: '^[0-9]+$' }, '1:', [': "1:" / a time']],
    [
      'a long text in short',
      { type: 'number' },
      'x'.repeat(99),
      [`: "${'x'.repeat(60)}"... (99 characters) / a number`],
    ],
    [
      'a word',
      pet,
      { name: 'a', colour: 'wite' },
      ['/colour: "wite" / one of "black", "white"; did you mean "white"?'],
    ],
    ['a constant', { const: 1 }, 2, [': 2 / 1']],
    ['a missing property', pet, {}, ['/name: missing / a non-empty string']],
    [
      'an unknown property near a known one',
      pet,
      { name: 'a', leg: 4 },
      ['/leg: an unknown property / a known one; did you mean "legs"?'],
    ],
    [
      'an unknown property near none',
      pet,
      { name: 'a', wings: 2 },
      ['/wings: an unknown property / only name, legs, colour'],
    ],
    [
      'all that is wrong',
      pet,
      { legs: 0, colour: 1 },
      [
        '/legs: 0 / a whole number from 1 to 9',
        '/colour: 1 / one of "black", "white"',
        '/name: missing / a non-empty string',
      ],
    ],
    ['an entry of a list', { type: 'array', items: wholePart }, [1, 0], ['/1: 0 / a whole number from 1 to 9']],
    ['too few entries', { type: 'array', minItems: 1 }, [], [': an empty list / a list that is not empty']],
    ['too many entries', { type: 'array', maxItems: 1 }, [1, 2], [': a list of 2 / a list of 0 to 1']],
    ['an entry twice', { type: 'array', uniqueItems: true }, ['a', 'b', 'a'], ['/2: "a" / each only once']],
    [
      'too few properties',
      { type: 'object', minProperties: 1 },
      { a: undefined },
      [': an object with a / an object with at least one property'],
    ],
    [
      'one without the other',
      { properties: { a: {}, b: wholePart }, dependentRequired: { a: ['b'] } },
      { a: 1 },
      ['/b: missing / a whole number from 1 to 9, beside "a"'],
    ],
    [
      'a name of a property',
      { propertyNames: { title: 'a short name', type: 'string', maxLength: 1 } },
      { ab: 1 },
      ['/ab: named "ab" / a short name as its name'],
    ],
    [
      'a place whose name has slashes',
      { additionalProperties: wholePart },
      { 'a/b~c': 0 },
      ['/a~1b~0c: 0 / a whole number from 1 to 9'],
    ],
    [
      'none of several kinds',
      { title: 'a string or a digit', anyOf: [{ type: 'string' }, wholePart] },
      10,
      [': 10 / a string or a digit'],
    ],
    [
      'none of several kinds, without a title',
      { anyOf: [{ type: 'string' }, wholePart] },
      null,
      [': null / a string, or a whole number from 1 to 9'],
    ],
    [
      'what the branch of its word says',
      shapes,
      { name: 'a', kind: 'circle', side: 1 },
      ['/side: an unknown property / only name, kind, radius', '/radius: missing / a number'],
    ],
    [
      'a word of no branch, and what all branches share',
      shapes,
      { name: 1, kind: 'circel' },
      ['/kind: "circel" / one of "circle", "square"; did you mean "circle"?', '/name: 1 / a name'],
    ],
    [
      'a word of no branch, and what is missing in all',
      shapes,
      { kind: 5 },
      ['/kind: 5 / one of "circle", "square"', '/name: missing / a name'],
    ],
    ['neither of two forms', oneOrSeveral, { other: 1 }, [': an object with other / either "one", or "several"']],
    ['half of the first form', oneOrSeveral, { one: 1 }, ['/two: missing / a whole number']],
    [
      'both forms',
      oneOrSeveral,
      { one: 1, two: 2, several: [] },
      ['/several: an empty list / nothing beside "one" and "two"'],
    ],
    ['one form and half of the other', oneOrSeveral, { one: 1, several: [] }, ['/one: 1 / nothing beside "several"']],
    [
      'a constant of branches that the whole has told',
      {
        properties: { on: { type: 'boolean' } },
        anyOf: [{ properties: { on: { const: true } } }, { properties: { on: { const: false } } }],
      },
      { on: 5 },
      ['/on: 5 / true or false'],
    ],
    [
      'branches that need a word, without it',
      {
        title: 'a thing',
        type: 'object',
        anyOf: [
          { properties: { on: { const: true } }, required: ['on'] },
          { properties: { on: { const: false } }, required: ['on'] },
        ],
      },
      {},
      [': an object without properties / a thing'],
    ],
  ])('reports %s', (_, schema, value, expected) => {
    expect(told(schema, value)).toEqual(expected)
  })

  it('that is nested without end is not followed without end', () => {
    const list: JsonSchema = { type: 'object', properties: { next: { $ref: '#' } } }
    const endless: { next?: unknown } = {}
    endless.next = endless
    expect(told(list, endless)).toEqual([`${'/next'.repeat(64)}: nested too deep / at most 64 levels`])
  })

  it('by a part of the schema', () => {
    expect(new SchemaCheck(shapes).problemsOf(5, '#/$defs/name')).toEqual([
      { path: '', received: '5', expected: 'a name' },
    ])
  })

  it('without being misled by names that objects have anyway', () => {
    const value: unknown = JSON.parse('{ "name": "a", "__proto__": 1, "constructor": 2 }')
    expect(told(pet, value)).toEqual([
      '/__proto__: an unknown property / only name, legs, colour',
      '/constructor: an unknown property / only name, legs, colour',
    ])
  })
})

describe('a schema that checks do not understand', () => {
  it.each<[string, JsonSchema, string]>([
    ['has an unknown keyword', { oneOf: [] } as JsonSchema, 'checks do not understand the keyword oneOf'],
    ['says more beside a reference', { $ref: '#', minimum: 1 }, 'checks do not understand minimum beside $ref'],
    ['refers to nothing', { $ref: '#/$defs/x' }, 'the schema has no #/$defs/x'],
  ])('%s, and is rejected', (_, schema, message) => {
    expect(() => told(schema, 1)).toThrow(message)
  })
})

describe('a pointer', () => {
  it('leads to names and numbers, with slashes and tildes written out', () => {
    expect([pointerTo('', 'rules'), pointerTo('/rules', 3), pointerTo('/a', 'b/~')]).toEqual([
      '/rules',
      '/rules/3',
      '/a/b~1~0',
    ])
  })

  it('stops after a thousand problems, and says that there are more', () => {
    const wrong = Array.from({ length: 200_000 }, () => ({ unknown: 1 }))
    const item = { type: 'object', properties: { name: { type: 'string' } }, additionalProperties: false } as const
    const problems = new SchemaCheck({ type: 'array', items: item }).problemsOf(wrong)
    expect(problems).toHaveLength(1001)
    expect(problems[999]).toMatchObject({ path: '/999/unknown' })
    expect(problems[1000]).toEqual({
      path: '',
      received: 'more than 1000 problems',
      expected: 'the listed ones to be mended first',
    })
    expect(new SchemaCheck({ type: 'array', items: item }).problemsOf(wrong.slice(0, 999))).toHaveLength(999)
  })
})
