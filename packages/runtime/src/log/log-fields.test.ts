import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type LogFields, plainFields, Redaction } from './log-fields.ts'

const redaction = new Redaction()

/** As it comes out at the reader of the log. */
function written(fields: LogFields): unknown {
  return JSON.parse(JSON.stringify(plainFields(fields, redaction)))
}

describe('plainFields', () => {
  it('keeps plain data', () => {
    const fields = { a: 'text', b: 1.5, c: true, d: null, e: [1, 'two', { f: [] }], g: { h: {} } }
    expect(written(fields)).toEqual(fields)
  })

  it('writes what JSON has no form for', () => {
    const fields = {
      big: 2n ** 70n,
      nan: Number.NaN,
      infinite: Number.NEGATIVE_INFINITY,
      missing: undefined,
      call: () => 1,
      symbol: Symbol('s'),
      bytes: new Uint8Array(12),
      date: new Date(0),
      url: new URL('https://me:pw@host/'),
      map: new Map<unknown, unknown>([
        ['a', 1],
        [5, { token: 't' }],
      ]),
      set: new Set(['x', undefined]),
    }
    expect(written(fields)).toEqual({
      big: '1180591620717411303424',
      nan: 'NaN',
      infinite: '-Infinity',
      call: '[function]',
      symbol: '[symbol]',
      bytes: '[12 bytes]',
      date: '1970-01-01T00:00:00.000Z',
      url: 'https://[redacted]@host/',
      map: { 5: { token: '[redacted]' }, a: 1 },
      set: ['x', null],
    })
  })

  it('writes an error with its cause and what was added to it', () => {
    const cause = new TypeError('redis://u:p@h is down')
    const error = Object.assign(new Error('failed', { cause }), { code: 'E_GONE', token: 't' })
    expect(written({ error })).toMatchObject({
      error: {
        name: 'Error',
        message: 'failed',
        stack: expect.stringContaining('log-fields.test'),
        code: 'E_GONE',
        token: '[redacted]',
        cause: { name: 'TypeError', message: 'redis://[redacted]@h is down' },
      },
    })
    expect(written({ error: new AggregateError([new Error('one')], 'all') })).toMatchObject({
      error: { message: 'all', errors: [{ message: 'one' }] },
    })
  })

  it('stops at circles, depth, length and number', () => {
    const circle: Record<string, unknown> = { name: 'c' }
    circle['self'] = circle
    const deep = Array.from({ length: 20 }).reduce<unknown>((inner) => ({ inner }), 'end')
    const items = Array.from({ length: 250 }, (_, n) => n)
    const many = Object.fromEntries(items.map((n) => [`f${n}`, n]))
    const result = written({ circle, deep, items, many, text: 'x'.repeat(10_000) }) as Record<string, unknown>
    expect(result['circle']).toEqual({ name: 'c', self: '[circular]' })
    expect(JSON.stringify(result['deep'])).toBe('{"inner":{"inner":{"inner":{"inner":{"inner":"[deeper]"}}}}}')
    expect(result['items']).toEqual([...items.slice(0, 100), '[150 more]'])
    expect(Object.keys(result['many'] as object)).toHaveLength(101)
    expect(result['many']).toMatchObject({ f0: 0, f99: 99, '[more]': 150 })
    expect(result['text']).toBe(`${'x'.repeat(8192)}[1808 more]`)
  })

  it('writes one object in two places twice', () => {
    const shared = { a: 1 }
    expect(written({ one: shared, other: [shared, shared] })).toEqual({ one: shared, other: [shared, shared] })
  })

  it('says so when an object cannot be read', () => {
    const fields = {
      get broken() {
        throw new Error('no')
      },
      inner: {
        toJSON() {
          throw new Error('no')
        },
      },
      fine: 1,
    }
    expect(written(fields)).toEqual({ broken: '[unreadable]', inner: '[unreadable]', fine: 1 })
  })

  it('takes a field called __proto__ for one like any other', () => {
    expect(JSON.stringify(plainFields(JSON.parse('{"__proto__":{"a":1}}'), redaction))).toBe('{"__proto__":{"a":1}}')
  })

  it('never writes the value of a secret field, wherever it is, and never fails (property)', () => {
    const secretName = fc.constantFrom('authorization', 'apiKey', 'x-token', 'Password', 'cookie', 'client_secret')
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof({ depthSize: 'small' }, fc.anything(), tie('secret'), fc.array(tie('tree'), { maxLength: 3 })),
      secret: fc.dictionary(secretName, fc.constantFrom('hunter2', ['hunter2'], { a: 'hunter2' }), { maxKeys: 2 }),
    }))
    fc.assert(
      fc.property(fc.dictionary(fc.string(), tree), (fields) => {
        expect(JSON.stringify(plainFields(fields, redaction))).not.toContain('hunter2')
      }),
    )
  })
})
