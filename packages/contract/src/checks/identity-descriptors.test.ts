import { describe, expect, it } from 'vitest'
import { parseResetRequest } from '../admin/usage-bodies.ts'
import type { Parsed } from '../schema/body-parser.ts'
import type { FieldProblem } from '../schema/value-schemas.ts'
import { parseBatchRequest, parseCheckRequest } from './check-request.ts'
import { parseAcquireRequest, parseReserveRequest } from './reservation-bodies.ts'

/** Everything that reads both identities and descriptors from a body, and where the descriptors stand in it. */
const READERS: readonly (readonly [name: string, at: string, parse: (call: object) => Parsed<object>])[] = [
  ['a check', '', (call) => parseCheckRequest(call)],
  ['a batch', '/requests/0', (call) => parseBatchRequest({ requests: [call] })],
  ['a reservation', '', (call) => parseReserveRequest(call)],
  ['a slot', '', (call) => parseAcquireRequest(call)],
  ['a reset', '', (call) => parseResetRequest(call)],
]

function problemsOf(parsed: Parsed<object>): readonly FieldProblem[] {
  return parsed.ok ? [] : parsed.problems
}

describe.each(READERS)('%s', (_, at, parse) => {
  it.each([
    ['user', 'userId', 'alice', 'bob'],
    ['ip', 'clientIp', '192.0.2.1', '192.0.2.2'],
    ['tenant', 'tenantId', 'acme', 'other'],
  ])('refuses %s and %s that disagree', (field, otherName, value, other) => {
    const call = { resource: '/orders', [field]: value, [otherName]: other }
    expect(problemsOf(parse(call))).toEqual([
      {
        path: `${at}/${otherName}`,
        received: `a value that "${field}" does not have`,
        expected: `the value of "${field}", or no "${otherName}": "${field}" says who is counted`,
      },
    ])
    expect(problemsOf(parse({ ...call, [otherName]: value }))).toEqual([])
  })

  it.each([
    ['user', 'user', 'alice', 'bob'],
    ['userId', 'user', 'alice', 'bob'],
    ['apiKey', 'apiKey', 'key-1', 'key-2'],
    ['ip', 'ip', '192.0.2.1', '192.0.2.2'],
    ['clientIp', 'ip', '192.0.2.1', '192.0.2.2'],
    ['tenant', 'tenant', 'acme', 'other'],
    ['tenantId', 'tenant', 'acme', 'other'],
    ['service', 'service', 'billing', 'shop'],
  ])('refuses %s and a descriptor "%s" that disagree', (field, name, value, other) => {
    const call = { resource: '/orders', [field]: value, descriptors: { [name]: other, model: 'large' } }
    expect(problemsOf(parse(call))).toEqual([
      {
        path: `${at}/descriptors/${name}`,
        received: `a value that "${field}" does not have`,
        expected: `the value of "${field}", or no descriptor "${name}": "${field}" says who is counted`,
      },
    ])
    expect(problemsOf(parse({ ...call, descriptors: { [name]: value } }))).toEqual([])
  })

  it.each(['user', 'apiKey', 'ip', 'tenant'])(
    'rejects a descriptor "%s" without the field of the same name, which identifies the caller',
    (name) => {
      expect(problemsOf(parse({ resource: '/orders', descriptors: { [name]: 'x' } }))).toEqual([
        {
          path: `${at}/descriptors/${name}`,
          received: `a value that "${name}" does not have`,
          expected: `the value of "${name}", or no descriptor "${name}": "${name}" says who is counted`,
        },
      ])
    },
  )

  it('takes a number for the text it is written as', () => {
    expect(problemsOf(parse({ resource: '/orders', userId: '42', descriptors: { user: 42 } }))).toEqual([])
    expect(problemsOf(parse({ resource: '/orders', userId: '42', descriptors: { user: 43 } }))).toHaveLength(1)
  })

  it('tells of other mistakes as well', () => {
    const paths = problemsOf(parse({ resource: 7, userId: 'alice', descriptors: { user: 'bob' } })).map(
      ({ path }) => path,
    )
    expect(paths).toEqual([`${at}/resource`, `${at}/descriptors/user`])
  })
})
