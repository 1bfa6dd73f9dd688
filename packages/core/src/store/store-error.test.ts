import { describe, expect, it } from 'vitest'
import { SluiceError } from '../errors.ts'
import { failureOf, outcomeUnknown, storeUnavailable } from './store-error.ts'

describe('what an error of a store says', () => {
  it('it was unavailable', () => {
    const beneath = new Error('ECONNREFUSED')
    const error = storeUnavailable({
      because: 'unreachable',
      problem: 'there is no connection',
      action: 'Wait.',
      cause: beneath,
    })
    expect(error).toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE', action: 'Wait.', cause: beneath })
    expect(error.message).toBe('SLUICE_STORE_UNAVAILABLE: there is no connection. Wait.')
    expect(failureOf(error)).toEqual({ cause: 'unreachable', charged: 'no' })
  })

  it('it returned an error', () => {
    const error = storeUnavailable({ because: 'refused', problem: 'out of memory' })
    expect(failureOf(error)).toEqual({ cause: 'refused', charged: 'no' })
  })

  it('it got the call and did not answer', () => {
    const error = outcomeUnknown({ because: 'deadline', problem: 'no answer' })
    expect(error.code).toBe('SLUICE_OUTCOME_UNKNOWN')
    expect(failureOf(error)).toEqual({ cause: 'deadline', charged: 'unknown' })
  })

  it('as much as its code, when it was made without more', () => {
    expect(failureOf(new SluiceError('SLUICE_STORE_UNAVAILABLE', { problem: 'x' }))).toEqual({
      cause: 'unreachable',
      charged: 'no',
    })
    expect(failureOf(new SluiceError('SLUICE_OUTCOME_UNKNOWN', { problem: 'x' }))).toEqual({
      cause: 'unreachable',
      charged: 'unknown',
    })
  })

  it.each(['SLUICE_CLOSED', 'SLUICE_UNSUPPORTED', 'SLUICE_STORE_FULL'] as const)('nothing: %s is misuse', (code) => {
    expect(failureOf(new SluiceError(code, { problem: 'x' }))).toBeUndefined()
  })

  it('that it failed, for an unknown error', () => {
    expect(failureOf(new TypeError('x'))).toEqual({ cause: 'refused', charged: 'unknown' })
    expect(failureOf('x')).toEqual({ cause: 'refused', charged: 'unknown' })
  })
})
