import type { DecisionRecord } from '@sluice/contract'
import { expect, it } from 'vitest'
import { callerText, countedCaller, explainPath, usagePath } from './caller.ts'

it('names callers as people do', () => {
  expect(callerText({ dimension: 'user', entity: 'ada' })).toBe('user ada')
  expect(callerText({ dimension: 'apiKey', entity: 'k1' })).toBe('API key k1')
  expect(callerText({ dimension: 'tenant+user', entity: 'acme+ada' })).toBe('tenant+user acme+ada')
})

it('puts no key of a caller into a URL', () => {
  expect(usagePath({ dimension: 'apiKey', entity: 'secret' })).toBeUndefined()
  expect(usagePath({ dimension: 'user', entity: 'a&b' })).toBe('/usage?user=a%26b')
  expect(usagePath({ dimension: 'tenant+user', entity: 'x' })).toBeUndefined()
  const path = explainPath({ resource: '/orders', method: 'POST', user: 'ada', apiKey: 'secret', tokens: 3 })
  expect(path).toBe('/explain?resource=%2Forders&method=POST&user=ada&tokens=3')
})

it('knows the caller that a decision counted', () => {
  const decision = { dimension: 'user', caller: 'ada', hidden: ['apiKey'] } as unknown as DecisionRecord
  expect(countedCaller(decision)).toEqual({ dimension: 'user', entity: 'ada' })
  expect(countedCaller({ ...decision, dimension: 'apiKey', caller: '7f3a' })).toEqual({
    dimension: 'apiKey',
    entity: 'digest:7f3a',
  })
  expect(countedCaller({ ...decision, dimension: 'apiKey+user', caller: '7f3a+ada' })).toBeUndefined()
  expect(countedCaller({ ...decision, dimension: 'global', caller: '' })).toBeUndefined()
  expect(countedCaller({ ...decision, caller: undefined } as unknown as DecisionRecord)).toBeUndefined()
})
