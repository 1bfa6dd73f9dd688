import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readYaml, YamlError } from './yaml-reader.ts'
import { writeYaml } from './yaml-writer.ts'

const RULES = {
  rules: [
    { resource: '/orders/:id', dimension: 'user', methods: ['POST', 'PUT'], limit: 100, window: '1m' },
    {
      resource: '*',
      dimension: 'tenant+user',
      windows: [
        { limit: 10, window: '1s' },
        { limit: 1000, window: '1h' },
      ],
    },
  ],
  exemptions: [{ name: 'health', match: { resource: '/health' } }],
  regions: {},
}

const RULES_TEXT = `rules:
  - resource: /orders/:id
    dimension: user
    methods: [POST, PUT]
    limit: 100
    window: 1m
  - resource: "*"
    dimension: tenant+user
    windows:
      - { limit: 10, window: 1s }
      - { limit: 1000, window: 1h }
exemptions:
  - name: health
    match: { resource: /health }
regions: {}
`

function thrownBy(run: () => unknown): unknown {
  try {
    run()
  } catch (error) {
    return error
  }
  return undefined
}

describe('writing', () => {
  it('is what people would write', () => {
    expect(writeYaml(RULES)).toBe(RULES_TEXT)
  })

  it('quotes what would be read as something else', () => {
    expect(writeYaml(['off', 'true', '12', '1e3', '', 'a: b', '# no', '- x', 'a b', "it's", '1m', 'é'])).toBe(
      '- "off"\n- "true"\n- "12"\n- "1e3"\n- ""\n- "a: b"\n- "# no"\n- "- x"\n- "a b"\n- "it\'s"\n- 1m\n- "é"\n',
    )
  })
})

describe('reading', () => {
  it('comes back as it was', () => {
    expect(readYaml(RULES_TEXT).value).toEqual(RULES)
  })

  it('comes back for any plain data', () => {
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof({ maxDepth: 4 }, tie('leaf'), fc.array(tie('tree')), fc.dictionary(fc.string(), tie('tree'))),
      leaf: fc.oneof(
        fc.string(),
        fc.integer(),
        fc.boolean(),
        fc.constant(null),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
      ),
    }))
    fc.assert(
      fc.property(tree, (value) => {
        const plain = JSON.parse(JSON.stringify(value)) as unknown
        expect(readYaml(writeYaml(plain)).value).toEqual(plain)
      }),
    )
  })

  it('knows the line of each value', () => {
    const { lines } = readYaml(RULES_TEXT)
    expect(lines.get('/rules/0/window')).toBe(6)
    expect(lines.get('/rules/1')).toBe(7)
    expect(lines.get('/rules/1/windows/1')).toBe(11)
    expect(lines.get('/exemptions/0/match')).toBe(14)
  })

  it.each([
    ['', null],
    ['# nothing\n---\n\n', null],
    ['a: 1 # one\nb: "# two"\n', { a: 1, b: '# two' }],
    ['a:\n- 1\n- 2\nb: 0x1f', { a: [1, 2], b: 31 }],
    ['a:\n  b:\n    c: -1.5e3\n', { a: { b: { c: -1500 } } }],
    ['- - 1\n  - 2\n- {}\n', [[1, 2], {}]],
    ["'a b': it's fine", { 'a b': "it's fine" }],
    ['a: [1,\n  2, {b: c}]\n', { a: [1, 2, { b: 'c' }] }],
    ['-\n  a: 1\n- b:', [{ a: 1 }, { b: null }]],
    ['at: 2026-12-31T23:59:59Z', { at: '2026-12-31T23:59:59Z' }],
    ['r: /orders/:id\r\nt: "a\\u00e9\\n"', { r: '/orders/:id', t: 'aé\n' }],
  ])('%j', (text, value) => {
    expect(readYaml(text).value).toEqual(value)
  })

  it.each([
    ['a: |\n  text', { a: 'text\n' }],
    ['a: one\n  two', { a: 'one two' }],
    ['a: &limits { limit: 5 }\nb: { <<: *limits, window: 1m }', { a: { limit: 5 }, b: { limit: 5, window: '1m' } }],
  ])('%j, as a file of rules may say it', (text, value) => {
    expect(readYaml(text).value).toEqual(value)
  })

  it.each([
    ['a: 1\na: 2', 2, 'This name stands here twice.'],
    ['resource: *', 1, 'A value that begins with * must be in quotes, such as "*".'],
    ['b: 1\na: *limits', 2, 'A value that begins with * must be in quotes, such as "*".'],
    ['a: !rule 1', 1, 'Unresolved tag: !rule.'],
    ['a:\n  - 1\n - 2', 3, expect.stringContaining('Indent this line as those beside it')],
    ['  a: 1\nb: 2', 2, 'Unexpected scalar at node end.'],
    ['a: 1\n   b: 2', 1, expect.stringContaining('Indent this line as those beside it')],
    ['a:\n\t- 1', 2, 'A tab cannot indent a line. Use spaces.'],
    ['a: [1, 2', 1, expect.stringContaining('a bracket is never closed')],
    ['a: "b', 1, expect.stringContaining('A quote, a bracket')],
    ['a: b: c', 1, expect.stringContaining('in quotes')],
    ['a: 1\nb', 2, expect.stringContaining('the colon after a name is missing')],
    ['a: 1\n---\nb: 2', 2, 'Only one document can be read. Remove this line.'],
    ['a: [1] x', 1, 'Unexpected scalar at node end.'],
  ])('%j is rejected', (text, line, message) => {
    const error = thrownBy(() => readYaml(text))
    expect(error).toBeInstanceOf(YamlError)
    expect(error).toMatchObject({ line, message })
  })

  it('stops where aliases stand for more than memory holds', () => {
    const levels = Array.from({ length: 12 }, (_, level) => `l${level + 1}: &l${level + 1} [${list(`*l${level}`)}]`)
    const error = thrownBy(() => readYaml(`l0: &l0 [${list('1')}]\n${levels.join('\n')}`))
    expect(error).toBeInstanceOf(YamlError)
  })
})

function list(item: string): string {
  return Array.from({ length: 10 }, () => item).join(', ')
}
