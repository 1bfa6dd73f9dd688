import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Answer } from '../../operations/handler.ts'
import type { Found } from './router.ts'
import { createRouter } from './router.ts'

const ROUTES = [
  { path: '/livez', method: 'GET', target: 'livez' },
  { path: '/check', method: 'POST', target: 'check' },
  { path: '/tiers', method: 'GET', target: 'tiers' },
  { path: '/tiers/{name}', method: 'PUT', target: 'put tier' },
  { path: '/tiers/{name}', method: 'DELETE', target: 'delete tier' },
  { path: '/versions/rollback', method: 'POST', target: 'rollback' },
  { path: '/versions/{number}', method: 'GET', target: 'version' },
  { path: '/versions/{number}/diff/{to}', method: 'GET', target: 'diff' },
]

const route = createRouter(ROUTES, 'Look at /openapi.json.')

function found(url: string, method: string): readonly [string, unknown] | readonly [number, string | undefined] {
  const result: Found<string> | Answer = route(url, method)
  return 'status' in result ? [result.status, result.headers['Allow']] : [result.target, result.params]
}

describe('a router', () => {
  it.each([
    ['/livez', 'GET', 'livez', {}],
    ['/livez', 'HEAD', 'livez', {}],
    ['/livez?x=/y', 'GET', 'livez', {}],
    ['/livez#x', 'GET', 'livez', {}],
    ['http://any:81/check?x', 'POST', 'check', {}],
    ['/tiers/gold', 'PUT', 'put tier', { name: 'gold' }],
    ['/tiers/a%2Fb%20c?note=1', 'DELETE', 'delete tier', { name: 'a/b c' }],
    ['/tiers/%F0%9F%A6%8A', 'PUT', 'put tier', { name: '🦊' }],
    ['/versions/12', 'GET', 'version', { number: '12' }],
    ['/versions/12/diff/13', 'GET', 'diff', { number: '12', to: '13' }],
    ['/versions/rollback', 'POST', 'rollback', {}],
  ])('finds %s %s', (url, method, target, params) => {
    expect(found(url, method)).toEqual([target, params])
  })

  it('puts a path without names before one with', () => {
    expect(found('/versions/rollback', 'GET')).toEqual([405, 'POST'])
  })

  it.each([
    ['/check', 'GET', 'POST'],
    ['/livez', 'POST', 'GET, HEAD'],
    ['/tiers/gold', 'GET', 'PUT, DELETE'],
    ['/tiers', 'toString', 'GET, HEAD'],
  ])('answers %s %s with 405 and what is allowed', (url, method, allow) => {
    expect(found(url, method)).toEqual([405, allow])
  })

  it.each([
    '',
    '/',
    '/tiers/',
    '/tiers/a/b',
    '//tiers/a',
    '/TIERS/a',
    '/versions/1/diff/',
    '/constructor',
    '*',
    'tiers/a',
  ])('has nothing at %j', (url) => {
    const answer = route(url, 'GET') as Answer
    expect(answer.status).toBe(404)
    expect(answer.body).toContain('Look at /openapi.json.')
  })

  it.each(['/tiers/%', '/tiers/%zz', '/tiers/%ff'])('rejects %s, which no text was encoded to', (url) => {
    expect(found(url, 'PUT')).toEqual([400, undefined])
  })

  it('gives back any name as it was encoded (property)', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (name) => {
        expect(found(`/tiers/${encodeURIComponent(name)}`, 'PUT')).toEqual(['put tier', { name }])
      }),
    )
  })

  it('never throws, whatever the request target (property)', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (url, method) => {
        expect(route(`/${url}`, method)).toBeDefined()
      }),
    )
  })
})
