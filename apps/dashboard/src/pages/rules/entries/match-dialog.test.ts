import { expect, it } from 'vitest'
import { matchOf, textsOf } from './match-dialog.tsx'

it('reads a match from texts and back', () => {
  const match = {
    resource: '/health',
    methods: ['GET', 'HEAD'],
    cidrs: ['10.0.0.0/8'],
    dimension: 'user',
    entities: ['a'],
  }
  expect(textsOf(match)).toEqual({
    resource: '/health',
    methods: 'GET, HEAD',
    cidrs: '10.0.0.0/8',
    dimension: 'user',
    entities: 'a',
  })
  expect(matchOf(textsOf(match))).toEqual(match)
})

it('leaves out what is empty', () => {
  expect(matchOf({ resource: ' ', methods: 'GET,, POST ,', services: '' })).toEqual({ methods: ['GET', 'POST'] })
  expect(textsOf(undefined)).toEqual({})
})
