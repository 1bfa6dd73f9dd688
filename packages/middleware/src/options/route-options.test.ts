import { createLimiter, memoryStore } from '@sluice/core'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RateLimitOptions } from './rate-limit-options.ts'
import { definesLimits, routeOptions, usesStore } from './route-options.ts'

type Options = RateLimitOptions<unknown>

const store = memoryStore()
const limiter = createLimiter({ limit: 1, window: '1s' })
const check = (): never => {
  throw new Error('not asked')
}
const app: Options = { limit: 100, window: '1m', burst: 50, name: 'app', status: 430, headers: 'both', store }

describe('the options of a route', () => {
  it.each<[string, Options, Options]>([
    ['nothing', {}, app],
    ['how limits are applied', { cost: 5, status: 420 }, { ...app, cost: 5, status: 420 }],
    ['another name for the same limit', { name: 'mine' }, { ...app, name: 'mine' }],
    [
      'a limit',
      { limit: 5, window: '1s' },
      { limit: 5, window: '1s', name: 'route', status: 430, headers: 'both', store },
    ],
    [
      'a limit with its name',
      { limit: 5, window: '1s', name: 'mine' },
      { limit: 5, window: '1s', name: 'mine', status: 430, headers: 'both', store },
    ],
    ['part of a limit', { limit: 5 }, { limit: 5, name: 'route', status: 430, headers: 'both', store }],
    [
      'several rules',
      { rules: { each: { limit: 5, window: '1s' } } },
      { rules: { each: { limit: 5, window: '1s' } }, status: 430, headers: 'both', store },
    ],
    ['a limiter', { limiter }, { limiter, status: 430, headers: 'both' }],
    ['a function', { check }, { check, status: 430, headers: 'both' }],
  ])('that brings %s', (_, route, expected) => {
    onTestFinished(() => limiter.close())
    expect(routeOptions(app, route, 'route')).toEqual(expected)
  })

  it('count together with the app by its default name', () => {
    const { name: _, ...unnamed } = app
    expect(routeOptions<Options>(unnamed, { cost: 2 }, 'route')).toEqual({ ...unnamed, cost: 2, name: 'default' })
    expect(routeOptions<Options>({ limiter }, { cost: 2 }, 'route')).toEqual({ limiter, cost: 2 })
  })

  it('have no name where there is no route to take it from', () => {
    expect(routeOptions<Options>({ status: 430 }, { limit: 5, window: '1s' })).toEqual({
      limit: 5,
      window: '1s',
      status: 430,
    })
  })

  it('never changes what it was given', () => {
    const [frozenApp, frozenRoute] = [Object.freeze({ ...app }), Object.freeze({ limit: 5, window: '1s' } as Options)]
    routeOptions(frozenApp, frozenRoute, 'route')
    expect([frozenApp, frozenRoute]).toEqual([app, { limit: 5, window: '1s' }])
  })
})

it.each<[boolean, Options]>([
  [true, { burst: 5 }],
  [true, { rules: {} }],
  [true, { check }],
  [false, { name: 'mine' }],
  [false, { store, key: 'ip', cost: 2, skip: () => true }],
  [false, {}],
])('it is %s that limits are brought by %o', (expected, options) => {
  expect(definesLimits(options)).toBe(expected)
})

it('only rules are counted in a store', () => {
  expect([{}, { limit: 1 }, { rules: {} }, { limiter }, { check }].map((options) => usesStore(options))).toEqual([
    true,
    true,
    true,
    false,
    false,
  ])
})
