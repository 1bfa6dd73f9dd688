import { describe, expect, it } from 'vitest'
import { SCHEMAS } from '../openapi.ts'
import { PROBLEM_MEDIA_TYPE, PROBLEMS } from '../service/problem.ts'
import type { Operation, OperationRole } from './operation.ts'
import { mayDo, OPERATIONS } from './operation-table.ts'

const operations = Object.values<Operation>(OPERATIONS)

/**
 * Every route of the service with the role it needs. It stands here again, because the table must not change by
 * accident.
 */
const ROUTES = `
none   POST   /internal/ratelimit/check
none   POST   /internal/ratelimit/check/batch
none   POST   /internal/ratelimit/batch
none   POST   /internal/ratelimit/peek
none   POST   /internal/ratelimit/reserve
none   POST   /internal/ratelimit/settle
none   POST   /internal/ratelimit/release
none   POST   /internal/ratelimit/acquire
none   POST   /internal/ratelimit/heartbeat
none   POST   /internal/ratelimit/report
none   POST   /json
none   GET    /internal/ratelimit/forward-auth
none   GET    /v1/ids
none   GET    /livez
none   GET    /readyz
none   GET    /metrics
none   GET    /openapi.json
viewer GET    /admin/ratelimits
editor PUT    /admin/ratelimits
editor DELETE /admin/ratelimits
viewer GET    /admin/ratelimits/usage
viewer GET    /admin/tiers
editor PUT    /admin/tiers/{name}
editor DELETE /admin/tiers/{name}
viewer GET    /admin/exemptions
admin  PUT    /admin/exemptions/{name}
admin  DELETE /admin/exemptions/{name}
viewer GET    /admin/deny-list
admin  PUT    /admin/deny-list/{name}
admin  DELETE /admin/deny-list/{name}
viewer GET    /admin/overrides
editor PUT    /admin/overrides
editor DELETE /admin/overrides
editor POST   /admin/overrides/bulk
viewer GET    /admin/members
editor PUT    /admin/members
editor DELETE /admin/members
editor POST   /admin/members/bulk
viewer GET    /admin/blocks
viewer GET    /admin/blocks.txt
editor PUT    /admin/blocks
editor DELETE /admin/blocks
viewer GET    /admin/incident
editor PUT    /admin/incident
editor POST   /admin/reset
viewer GET    /admin/versions
editor POST   /admin/versions
viewer GET    /admin/versions/{number}
viewer GET    /admin/versions/{number}/diff
editor POST   /admin/versions/{number}/stage
editor POST   /admin/versions/rollback
editor POST   /admin/versions/import
admin  GET    /admin/api-keys
admin  POST   /admin/api-keys
admin  POST   /admin/api-keys/{id}/rotate
admin  DELETE /admin/api-keys/{id}
none   POST   /auth/session
none   GET    /auth/session
none   DELETE /auth/session
viewer GET    /admin/sessions
viewer DELETE /admin/sessions/{id}
viewer POST   /admin/explain
viewer GET    /admin/audit
viewer GET    /admin/live
viewer GET    /admin/history
viewer GET    /admin/top
viewer GET    /admin/gateway
viewer GET    /admin/overview
viewer GET    /admin/overview/live
viewer GET    /admin/versions/{number}/shadow
viewer GET    /admin/decisions
viewer GET    /admin/decisions/live
viewer GET    /admin/decisions/{id}/explain
viewer GET    /admin/nodes
viewer GET    /admin/alerts
admin  POST   /admin/alerts/{id}/acknowledge
admin  POST   /admin/alerts/{id}/silence
viewer GET    /admin/alerts/dead-letters
admin  POST   /admin/alerts/dead-letters/{id}/retry
`

describe('the table of operations', () => {
  it('has these routes, with these roles', () => {
    const routes = operations.map(({ role, method, path }) => `${role.padEnd(6)} ${method.padEnd(6)} ${path}`)
    expect(routes).toEqual(ROUTES.trim().split('\n'))
  })

  it('has no route twice', () => {
    expect(new Set(operations.map(({ method, path }) => `${method} ${path}`)).size).toBe(operations.length)
  })

  it('knows each operation by its id', () => {
    for (const [id, operation] of Object.entries(OPERATIONS)) expect(operation.id).toBe(id)
  })

  it('asks for a key on every admin route, and on no other', () => {
    for (const { path, role } of operations)
      expect([path, role === 'none']).toEqual([path, !path.startsWith('/admin/')])
  })

  it('lets viewers do nothing that changes something', () => {
    const changing = operations.filter(({ role, method }) => role === 'viewer' && method !== 'GET')
    expect(changing.map(({ id }) => id)).toEqual(['endSession', 'explain'])
  })
})

describe.each(operations.map((operation) => [operation.id, operation] as const))(
  'the operation %s',
  (_id, operation) => {
    const { method, path, parameters, body, answers, hasEtag, isPaged, streams, maxBodyBytes, role } = operation
    const [status, success] = Object.entries(answers)[0]!

    it('describes exactly the parameters of its path', () => {
      const named = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1])
      const described = Object.entries(parameters).filter(([, parameter]) => parameter.in === 'path')
      expect(described.map(([name]) => name)).toEqual(named)
      for (const [, parameter] of described) expect(parameter.required).toBe(true)
    })

    it('has parameters that can be written in a query', () => {
      for (const { schema, description } of Object.values(parameters)) {
        expect(['string', 'integer']).toContain(schema.type)
        expect(description.length).toBeGreaterThan(5)
      }
    })

    it('has one answer for when it goes well', () => {
      const good = Object.keys(answers).filter((number) => Number(number) < 400 && number !== '304')
      expect(good).toEqual([status])
      expect(success.schema === undefined).toBe(status === '204' || status === '202')
    })

    it('answers every problem with its own status, as a problem document', () => {
      const problems = Object.entries(answers).filter(([, answer]) => answer.problems !== undefined)
      expect(problems.map(([number]) => number)).toContain('500')
      for (const [number, answer] of problems) {
        expect(answer).toMatchObject({
          mediaType: PROBLEM_MEDIA_TYPE,
          schema: { $ref: '#/components/schemas/Problem' },
        })
        for (const code of answer.problems ?? []) expect(PROBLEMS[code].status).toBe(Number(number))
      }
      const others = Object.entries(answers).filter(([number]) => Number(number) >= 400)
      const refusals = others.filter(([, answer]) => answer.problems === undefined)
      const denies = ['check', 'peek', 'reserve', 'acquire', 'shouldRateLimit'].includes(operation.id) ? ['429'] : []
      expect(refusals.map(([number]) => number)).toEqual(operation.id === 'forwardAuth' ? ['403', '429'] : denies)
    })

    it('answers the problems that its form leads to', () => {
      const codes = Object.values(answers).flatMap(({ problems = [] }) => problems)
      const expectCode = (code: keyof typeof PROBLEMS, isExpected: boolean) =>
        expect([code, codes.includes(code)]).toEqual([code, isExpected])
      expectCode('SLUICE_HTTP_TOO_LARGE', body !== undefined)
      expectCode('SLUICE_HTTP_INVALID_JSON', body !== undefined)
      const takesKey = role !== 'none' || operation.id === 'signIn'
      expectCode('SLUICE_HTTP_UNAUTHORIZED', takesKey)
      expectCode('SLUICE_HTTP_FORBIDDEN', takesKey)
      expectCode('SLUICE_HTTP_TOO_MANY_FAILURES', takesKey)
      const takesSession = role !== 'none' || operation.tag === 'sessions'
      expectCode('SLUICE_HTTP_CSRF', takesSession && method !== 'GET')
      expectCode('SLUICE_HTTP_INVALID_REQUEST', body !== undefined || Object.keys(parameters).length > 0)
      expectCode('SLUICE_HTTP_PRECONDITION_FAILED', hasEtag && method !== 'GET')
    })

    it('bounds its body', () => {
      expect(maxBodyBytes > 0).toBe(body !== undefined)
      if (method === 'GET' || method === 'DELETE') expect(body).toBeUndefined()
    })

    it('answers with an ETag where it takes part in locking and something is there afterwards', () => {
      const isEntryGone = ['deleteOverride', 'deleteMember', 'deleteBlock'].includes(operation.id)
      expect(success.headers?.includes('ETag') ?? false).toBe(hasEtag && !isEntryGone)
    })

    it('answers with a page where it takes one', () => {
      const name = success.schema?.$ref?.replace('#/components/schemas/', '') ?? ''
      const properties = Object.keys(SCHEMAS[name]?.properties ?? {})
      expect(properties.includes('items') && properties.includes('next')).toBe(isPaged)
    })

    it('streams events, or nothing', () => {
      expect(success.mediaType === 'text/event-stream').toBe(streams)
    })
  },
)

describe('mayDo', () => {
  it.each<[OperationRole, readonly OperationRole[]]>([
    ['none', ['none']],
    ['viewer', ['none', 'viewer']],
    ['editor', ['none', 'viewer', 'editor']],
    ['admin', ['none', 'viewer', 'editor', 'admin']],
  ])('lets %s do what %j may', (role, allowed) => {
    const roles: readonly OperationRole[] = ['none', 'viewer', 'editor', 'admin']
    expect(roles.filter((needed) => mayDo(role, needed))).toEqual(allowed)
  })
})
