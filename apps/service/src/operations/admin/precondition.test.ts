import { SluiceError } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import type { OperationRequest } from '../handler.ts'
import { answerToError } from '../problems.ts'
import { expectedOf, seenBy, underPrecondition } from './admin-requests.ts'

function requestWith(ifMatch?: string, ifNoneMatch?: string): OperationRequest {
  return {
    params: {},
    query: new URLSearchParams(),
    headers: {
      ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
      ...(ifNoneMatch === undefined ? {} : { 'if-none-match': ifNoneMatch }),
    },
    body: undefined,
    principal: undefined,
    remoteAddress: '',
    signal: new AbortController().signal,
  }
}

async function statusOf(promise: Promise<unknown>): Promise<number | undefined> {
  try {
    await promise
    return 200
  } catch (error) {
    return answerToError(error)?.status
  }
}

describe('If-Match', () => {
  it.each([
    [undefined, undefined],
    ['"0"', 0],
    [' "12" ', 12],
    ['*', 'any'],
  ])('%j asks for %j', (ifMatch, expected) => {
    expect(expectedOf(requestWith(ifMatch))).toBe(expected)
  })

  it.each(['', '12', 'W/"12"', '"12", "13"', '"-1"', '"1e3"', '"012"', '"99999999999999999"'])(
    '%j is no ETag of this service, so it does not hold',
    async (ifMatch) => {
      expect(await statusOf(seenBy(requestWith(ifMatch), () => Promise.resolve(1)))).toBe(412)
    },
  )

  it('* holds for what is there, at the revision it has by then', async () => {
    expect(await seenBy(requestWith('*'), () => Promise.resolve(7))).toEqual({ ifRevision: 7 })
    expect(await statusOf(seenBy(requestWith('*'), () => Promise.resolve(undefined)))).toBe(412)
  })

  it('makes a conflict 412, which is 409 without it', async () => {
    const conflict = (): Promise<never> => Promise.reject(new SluiceError('SLUICE_CONFLICT', { problem: 'x' }))
    expect(await statusOf(underPrecondition(requestWith('"1"'), conflict))).toBe(412)
    expect(await statusOf(underPrecondition(requestWith(), conflict))).toBe(409)
    const other = (): Promise<never> => Promise.reject(new SluiceError('SLUICE_NOT_FOUND', { problem: 'x' }))
    expect(await statusOf(underPrecondition(requestWith('"1"'), other))).toBe(404)
  })
})

describe('If-None-Match', () => {
  it('* asks for nothing to be there', async () => {
    const request = requestWith(undefined, ' * ')
    expect([expectedOf(request), await seenBy(request, () => expect.fail('not asked'))]).toEqual([
      'none',
      { ifRevision: 0 },
    ])
  })

  it.each([
    [undefined, '"1"'],
    [undefined, ''],
    ['"1"', '*'],
  ])('beside If-Match %j is not understood as %j, so it does not hold', async (ifMatch, ifNoneMatch) => {
    expect(await statusOf(seenBy(requestWith(ifMatch, ifNoneMatch), () => Promise.resolve(1)))).toBe(412)
  })
})
