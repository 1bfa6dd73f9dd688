import type { Precondition } from '@sluice/contract'
import { SluiceError } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { preconditionOf } from '../../listeners/http/endpoints.ts'
import type { RequestContext } from '../handler.ts'
import { answerToError } from '../problems.ts'
import { rejectUnexpected, seenBy, underPrecondition } from './config-access.ts'

function headers(ifMatch?: string, ifNoneMatch?: string): RequestContext['headers'] {
  return {
    ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
    ...(ifNoneMatch === undefined ? {} : { 'if-none-match': ifNoneMatch }),
  }
}

function requestWith(precondition?: Precondition): RequestContext {
  const { signal } = new AbortController()
  return { headers: {}, precondition, principal: undefined, remoteAddress: '', signal }
}

async function statusOf(work: () => unknown): Promise<number | undefined> {
  try {
    await work()
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
    expect(preconditionOf(headers(ifMatch))).toBe(expected)
  })

  it.each(['', '12', 'W/"12"', '"12", "13"', '"-1"', '"1e3"', '"012"', '"99999999999999999"'])(
    '%j is no ETag of this service, so it does not hold',
    (ifMatch) => {
      expect(preconditionOf(headers(ifMatch))).toMatchObject({ status: 412 })
    },
  )

  it('holds at the revision that it names', async () => {
    expect(await seenBy(requestWith(12), () => expect.fail('not asked'))).toEqual({ ifRevision: 12 })
  })

  it('* holds for what is there, at the revision it has by then', async () => {
    expect(await seenBy(requestWith('any'), () => Promise.resolve(7))).toEqual({ ifRevision: 7 })
    expect(await statusOf(() => seenBy(requestWith('any'), () => Promise.resolve(undefined)))).toBe(412)
    expect(await statusOf(() => rejectUnexpected(requestWith('any'), false))).toBe(412)
  })

  it('makes a conflict 412, which is 409 without it', async () => {
    const conflict = (): Promise<never> => Promise.reject(new SluiceError('SLUICE_CONFLICT', { problem: 'x' }))
    expect(await statusOf(() => underPrecondition(requestWith(1), conflict))).toBe(412)
    expect(await statusOf(() => underPrecondition(requestWith(), conflict))).toBe(409)
    const other = (): Promise<never> => Promise.reject(new SluiceError('SLUICE_NOT_FOUND', { problem: 'x' }))
    expect(await statusOf(() => underPrecondition(requestWith(1), other))).toBe(404)
  })
})

describe('If-None-Match', () => {
  it('* asks for nothing to be there', async () => {
    expect(preconditionOf(headers(undefined, ' * '))).toBe('none')
    expect(await seenBy(requestWith('none'), () => expect.fail('not asked'))).toEqual({ ifRevision: 0 })
    expect(await statusOf(() => rejectUnexpected(requestWith('none'), true))).toBe(412)
  })

  it.each([
    [undefined, '"1"'],
    [undefined, ''],
    ['"1"', '*'],
  ])('beside If-Match %j is not understood as %j, so it does not hold', (ifMatch, ifNoneMatch) => {
    expect(preconditionOf(headers(ifMatch, ifNoneMatch))).toMatchObject({ status: 412 })
  })
})
