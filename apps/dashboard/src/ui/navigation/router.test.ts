import { describe, expect, it } from 'vitest'
import { matchPath } from './router.ts'

describe('matchPath', () => {
  it.each([
    ['/', '/', {}],
    ['/rules', '/rules', {}],
    ['/rules/:name', '/rules/orders', { name: 'orders' }],
    ['/rules/:name', '/rules/%2Fapi%2Forders', { name: '/api/orders' }],
    ['/rules/:name', '/rules/100%', { name: '100%' }],
    ['/rules/:name/:tab', '/rules/a/b', { name: 'a', tab: 'b' }],
  ])('%s matches %s', (pattern, path, parameters) => {
    expect(matchPath(pattern, path)).toEqual(parameters)
  })

  it.each([
    ['/', '/rules'],
    ['/rules', '/'],
    ['/rules/:name', '/rules'],
    ['/rules/:name', '/rules/'],
    ['/rules/:name', '/rules/a/b'],
    ['/rules', '/rules-old'],
  ])('%s does not match %s', (pattern, path) => {
    expect(matchPath(pattern, path)).toBeUndefined()
  })
})
