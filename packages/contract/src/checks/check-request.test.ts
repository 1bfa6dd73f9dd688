import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { FieldProblem } from '../schema/value-schemas.ts'
import { MOST_CHECKS, MOST_TOKENS, parseBatchRequest, parseCheckRequest } from './check-request.ts'

const CHECK = { userId: 'user-123', resource: '/api/v1/data' }

function problemsOf(body: unknown): readonly FieldProblem[] {
  const parsed = parseCheckRequest(body)
  return parsed.ok ? [] : parsed.problems
}

describe('a valid check request', () => {
  it('keeps every field', () => {
    const body = {
      user: 'user-123',
      apiKey: 'key-abc',
      ip: '1.2.3.4',
      tenant: 'acme',
      resource: '/api/v1/data',
      method: 'POST',
      tokens: 5,
      descriptors: { model: 'large', bytes: 2048.5, constructor: 'x' },
      region: 'US',
      tier: 'premium',
      service: 'billing',
    }
    expect(parseCheckRequest(body)).toEqual({ ok: true, request: body })
  })

  it('may name identities as userId, clientIp and tenantId', () => {
    const body = { userId: 'user-123', apiKey: 'key-abc', clientIp: '1.2.3.4', tenantId: 'acme', resource: '/' }
    expect(parseCheckRequest(body)).toEqual({
      ok: true,
      request: { user: 'user-123', apiKey: 'key-abc', ip: '1.2.3.4', tenant: 'acme', resource: '/', tokens: 1 },
    })
  })

  it('takes one token when none are named', () => {
    expect(parseCheckRequest({ resource: '*' })).toMatchObject({ ok: true, request: { resource: '*', tokens: 1 } })
  })

  it.each([
    ['0', 0],
    ['-0', 0],
    ['1.0', 1],
    ['1e9', MOST_TOKENS],
  ])('reads tokens %s as %d', (text, tokens) => {
    const parsed = parseCheckRequest(JSON.parse(`{"resource":"*","tokens":${text}}`))
    expect(parsed).toMatchObject({ ok: true, request: { tokens } })
  })

  it.each([
    ['user', 'x'.repeat(256)],
    ['userId', 'x'.repeat(256)],
    ['userId', 'Zoë 🦊 __proto__'],
    ['apiKey', 'x'.repeat(512)],
    ['ip', '2001:db8::1'],
    ['clientIp', '2001:db8::1'],
    ['tenant', 'x'.repeat(256)],
    ['tenantId', 'x'.repeat(256)],
    ['resource', '/'],
    ['resource', '*'],
    ['resource', 'checkout'],
    ['resource', `/${'x'.repeat(2047)}`],
    ['method', "!#$%&'*+.^_`|~0aZ-"],
    ['descriptors', {}],
    ['descriptors', Object.fromEntries(Array.from({ length: 32 }, (_, index) => [`d${index}`, index]))],
    ['descriptors', { 'a.b_c-D9': 'x'.repeat(512), negative: -0.5 }],
    ['region', 'x'.repeat(64)],
    ['tier', 'a_.@-9'],
    ['service', 'x'.repeat(256)],
  ])('takes %s %j', (field, value) => {
    expect(problemsOf({ resource: '/', [field]: value })).toEqual([])
  })
})

describe('an invalid check request', () => {
  it.each([
    ['user', '', 'an empty string'],
    ['user', 'x'.repeat(257), 'a string of 257 characters'],
    ['ip', '1.2.3.4:80', 'a string of 10 characters'],
    ['tenant', 7, '7'],
    ['userId', '', 'an empty string'],
    ['userId', 'x'.repeat(257), 'a string of 257 characters'],
    ['userId', 'a\nb', 'a string of 3 characters'],
    ['userId', '\ud800', 'a string of 1 characters'],
    ['userId', 7, '7'],
    ['userId', null, 'null'],
    ['apiKey', 'x'.repeat(513), 'a string of 513 characters'],
    ['apiKey', 'secret\u007f', 'a string of 7 characters'],
    ['apiKey', ['secret'], 'an array'],
    ['clientIp', '1.2.3.4:80', 'a string of 10 characters'],
    ['clientIp', 16_909_060, '16909060'],
    ['tenantId', { id: 'secret' }, 'an object'],
    ['resource', 'api/v1/data', '"api/v1/data"'],
    ['resource', '', 'an empty string'],
    ['resource', `/${'x'.repeat(2048)}`, 'a string of 2049 characters'],
    ['resource', '/a\u0000b', String.raw`"/a\u0000b"`],
    ['method', '', 'an empty string'],
    ['method', 'GET /', '"GET /"'],
    ['method', 'X'.repeat(33), `"${'X'.repeat(33)}"`],
    ['tokens', -1, '-1'],
    ['tokens', 1.5, '1.5'],
    ['tokens', MOST_TOKENS + 1, '1000000001'],
    ['tokens', '1', '"1"'],
    ['tokens', true, 'true'],
    ['tokens', null, 'null'],
    ['descriptors', [], 'an array'],
    ['descriptors', 'model', 'a string of 5 characters'],
    ['descriptors', Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`d${index}`, 1])), 'an object'],
    ['region', '', 'an empty string'],
    ['region', 'x'.repeat(65), 'a string of 65 characters'],
    ['tier', '-premium', '"-premium"'],
    ['tier', 'x'.repeat(65), 'a string of 65 characters'],
    ['service', 'x'.repeat(257), 'a string of 257 characters'],
    ['service', 'a\tb', String.raw`"a\tb"`],
  ])('refuses %s %j and tells what it got', (field, value, received) => {
    const [problem, ...others] = problemsOf({ resource: '/', [field]: value })
    expect(others).toEqual([])
    expect(problem).toMatchObject({ path: `/${field}`, received })
    expect(problem?.expected).toMatch(/^(?:an?|1 to) .{10,}/)
  })

  it.each([
    ['model', '', 'an empty string', /^a number, or a string of 1 to 512 /],
    ['model', 'x'.repeat(513), 'a string of 513 characters', /^a number, or a string/],
    ['model', 'a\nb', 'a string of 3 characters', /^a number, or a string/],
    ['model', true, 'true', /^a number, or a string/],
    ['model', null, 'null', /^a number, or a string/],
    ['model', { a: 1 }, 'an object', /^a number, or a string/],
    ['9model', 'x', 'a name that descriptors cannot have', /^a name of 1 to 64 letters/],
    ['__proto__', 'x', 'a name that descriptors cannot have', /^a name of 1 to 64 letters/],
    ['m'.repeat(65), 'x', 'a name that descriptors cannot have', /^a name of 1 to 64 letters/],
  ])('refuses a descriptor %s of %j at its place', (name, value, received, expected) => {
    const body: unknown = JSON.parse(`{"resource":"/","descriptors":{"fine":1,"${name}":${JSON.stringify(value)}}}`)
    const [problem, ...others] = problemsOf(body)
    expect(others).toEqual([])
    expect(problem?.path).toMatch(new RegExp(`^/descriptors/${name.slice(0, 64)}`))
    expect(problem?.received).toBe(received)
    expect(problem?.expected).toMatch(expected)
  })

  it.each([
    ['null', 'null'],
    ['[]', 'an array'],
    ['"secret"', 'a string of 6 characters'],
    ['12', '12'],
  ])('refuses a body that is %s', (text, received) => {
    expect(problemsOf(JSON.parse(text))).toEqual([{ path: '', received, expected: 'a JSON object with the check' }])
  })

  it('refuses a number beyond those of JavaScript', () => {
    expect(problemsOf(JSON.parse('{"resource":"*","tokens":1e400}'))).toMatchObject([
      { path: '/tokens', received: 'Infinity' },
    ])
  })

  it('refuses such a number as a descriptor too', () => {
    expect(problemsOf(JSON.parse('{"resource":"*","descriptors":{"bytes":1e400}}'))).toMatchObject([
      { path: '/descriptors/bytes', received: 'Infinity' },
    ])
  })

  it('names every problem at once', () => {
    const body = { userId: '', apikey: 'k', resource: 'a/b', tokens: -1, 'a/b~c': 1 }
    expect(problemsOf(body).map(({ path }) => path)).toEqual(['/userId', '/resource', '/tokens', '/apikey', '/a~1b~0c'])
  })

  it('says nothing was received where the resource is missing', () => {
    expect(problemsOf({})).toMatchObject([{ path: '/resource', received: 'nothing' }])
  })

  it.each(['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty'])('refuses a member %s', (name) => {
    const body: unknown = JSON.parse(`{"resource":"*","${name}":{"userId":"root"}}`)
    const parsed = parseCheckRequest(body)
    expect(parsed).toMatchObject({ ok: false, problems: [{ path: `/${name}`, received: 'an unknown field' }] })
    expect(({} as Record<string, unknown>)['userId']).toBeUndefined()
  })

  it('does not find a needed field on the prototype', () => {
    const body = Object.create({ userId: 'root', resource: '*' }) as unknown
    expect(problemsOf(body).map(({ path }) => path)).toEqual(['/resource'])
  })

  it('lists a bounded number of unknown fields, cut to a bounded length, and counts the rest', () => {
    const body = Object.fromEntries(Array.from({ length: 2000 }, (_, index) => [`${index}${'x'.repeat(999)}`, 1]))
    const parsed = parseCheckRequest({ ...body, resource: '' })
    if (parsed.ok) throw new Error('expected problems')
    expect(parsed.problems).toHaveLength(1 + 16)
    expect(parsed.unlisted).toBe(2000 - 16)
    expect(Math.max(...parsed.problems.map(({ path }) => path.length))).toBeLessThan(80)
  })

  it('property: any JSON is answered, and never with the text of an identity', () => {
    const identities = fc.record(
      { userId: fc.anything(), apiKey: fc.anything(), tenantId: fc.anything(), clientIp: fc.anything() },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), identities), fc.string({ minLength: 9 }), (value, secret) => {
        const parsed = parseCheckRequest(value)
        expect(parsed.ok || parsed.problems.length > 0).toBe(true)
        const withSecret = problemsOf({ userId: `${secret}\n`, apiKey: `${secret}\n`, clientIp: secret })
        expect(withSecret.map(({ path }) => path)).toEqual(['/apiKey', '/userId', '/clientIp', '/resource'])
        for (const { received } of withSecret) expect(received).not.toContain(secret)
      }),
    )
  })
})

describe('a batch', () => {
  it('keeps its requests in their order, each filled in', () => {
    const parsed = parseBatchRequest({ requests: [CHECK, { resource: '*', tokens: 3 }] })
    expect(parsed).toEqual({
      ok: true,
      requests: [
        { user: 'user-123', resource: '/api/v1/data', tokens: 1 },
        { resource: '*', tokens: 3 },
      ],
    })
  })

  it('may have as many as 100', () => {
    const parsed = parseBatchRequest({ requests: Array.from({ length: MOST_CHECKS }, () => CHECK) })
    expect(parsed.ok && parsed.requests.length).toBe(100)
  })

  it.each([
    ['null', '', 'null'],
    ['[]', '', 'an array'],
    ['{}', '/requests', 'nothing'],
    ['{"requests":{}}', '/requests', 'an object'],
    ['{"requests":[]}', '/requests', 'an array'],
    [`{"requests":[${Array.from({ length: 101 }, () => '{"resource":"*"}').join()}]}`, '/requests', 'an array'],
    ['{"requests":[{"resource":"*"},7]}', '/requests/1', '7'],
    ['{"requests":[{"resource":"*","tokens":-1}]}', '/requests/0/tokens', '-1'],
    ['{"requests":[{"resource":"*"}],"note":"x"}', '/note', 'an unknown field'],
  ])('refuses %.60s', (text, path, received) => {
    expect(parseBatchRequest(JSON.parse(text))).toMatchObject({ ok: false, problems: [{ path, received }] })
  })

  it('lists a bounded number of problems and counts the others', () => {
    const requests = Array.from({ length: 100 }, () => ({ userId: '', tokens: -1 }))
    const parsed = parseBatchRequest({ requests })
    if (parsed.ok) throw new Error('expected problems')
    expect([parsed.problems.length, parsed.unlisted]).toEqual([64, 300 - 64])
  })
})
