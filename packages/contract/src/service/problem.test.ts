import { describe, expect, it } from 'vitest'
import { PROBLEMS } from './problem.ts'
import { problemDocument } from './problem-document.ts'

describe('problemDocument', () => {
  it('has the members of RFC 9457, and the code', () => {
    expect(problemDocument('SLUICE_HTTP_NOT_FOUND', { detail: 'Try /livez.' })).toEqual({
      type: 'urn:sluice:problem:not-found',
      title: 'Nothing exists at this path',
      status: 404,
      detail: 'Try /livez.',
      code: 'SLUICE_HTTP_NOT_FOUND',
    })
  })

  it('lists what is wrong with the fields', () => {
    const errors = [{ path: '/tokens', received: '-1', expected: 'a whole number' }]
    const document = problemDocument('SLUICE_HTTP_INVALID_REQUEST', { detail: 'One field is wrong.', errors })
    expect(document.errors).toEqual(errors)
  })
})

describe('a problem with more to say', () => {
  it('lists what is not ready', () => {
    const checks = [{ name: 'redis', ready: false, detail: 'no connection for 12 s' }]
    expect(problemDocument('SLUICE_HTTP_NOT_READY', { detail: 'Redis is unreachable.', checks })).toEqual({
      type: 'urn:sluice:problem:not-ready',
      title: 'The service is not ready',
      status: 503,
      detail: 'Redis is unreachable.',
      code: 'SLUICE_HTTP_NOT_READY',
      checks,
    })
  })
})

describe('the catalogue', () => {
  it('has a type of its own for each code, derived from the same words', () => {
    for (const [code, { name, status, title }] of Object.entries(PROBLEMS)) {
      expect(code).toBe(`SLUICE_HTTP_${name.toUpperCase().replaceAll('-', '_')}`)
      expect(status).toBeGreaterThanOrEqual(400)
      expect(status).toBeLessThan(600)
      expect(title.length).toBeGreaterThan(10)
    }
  })
})
