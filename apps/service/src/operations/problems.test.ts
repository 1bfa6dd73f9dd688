import { PROBLEMS } from '@sluice/contract'
import type { ErrorCode } from '@sluice/core'
import { SluiceError } from '@sluice/core'
import { RuleSetError } from '@sluice/core/policy'
import { describe, expect, it } from 'vitest'
import { answerToError, invalidRequest, notFound, placedError } from './problems.ts'

function answerTo(code: ErrorCode): { status: number; detail: string; headers: Readonly<Record<string, string>> } {
  const answer = answerToError(
    new SluiceError(code, { problem: 'the host db.internal:5432 said no', received: 7, action: 'Look.' }),
  )
  if (answer === undefined) throw new Error('it is thrown on')
  return { status: answer.status, detail: JSON.parse(answer.body).detail, headers: answer.headers }
}

describe('answerToError', () => {
  it.each<[ErrorCode, keyof typeof PROBLEMS, string | undefined]>([
    ['SLUICE_CONFIG_UNAVAILABLE', 'SLUICE_HTTP_CONFIG_UNAVAILABLE', '2'],
    ['SLUICE_STORE_UNAVAILABLE', 'SLUICE_HTTP_STORE_UNAVAILABLE', '1'],
    ['SLUICE_STORE_FULL', 'SLUICE_HTTP_OVERLOADED', '1'],
    ['SLUICE_CLOSED', 'SLUICE_HTTP_NOT_READY', '1'],
    ['SLUICE_OUTCOME_UNKNOWN', 'SLUICE_HTTP_OUTCOME_UNKNOWN', undefined],
  ])('reports %s without what it says about the inside', (code, problem, retryAfter) => {
    const { status, detail, headers } = answerTo(code)
    expect([status, headers['Retry-After']]).toEqual([PROBLEMS[problem].status, retryAfter])
    expect(detail).not.toContain('db.internal')
    expect(headers['Cache-Control']).toBe('no-store')
  })

  it.each<[ErrorCode, number]>([
    ['SLUICE_CONFIG_NOT_WRITABLE', 507],
    ['SLUICE_CONFLICT', 409],
    ['SLUICE_NOT_FOUND', 404],
    ['SLUICE_INVALID_OPTION', 400],
    ['SLUICE_INVALID_DURATION', 400],
    ['SLUICE_INVALID_COST', 400],
    ['SLUICE_INVALID_KEY', 400],
  ])('reports %s in its own words', (code, status) => {
    const answer = answerTo(code)
    expect([answer.status, answer.detail]).toEqual([status, 'The host db.internal:5432 said no; received 7. Look.'])
  })

  it('lists everything that is wrong with a rule set', () => {
    const problems = Array.from({ length: 300 }, (_, index) => ({ path: `/${index}`, received: '0', expected: '1' }))
    const answer = answerToError(new RuleSetError(problems))!
    expect([answer.status, JSON.parse(answer.body).errors]).toEqual([422, problems])
  })

  it('leaves to others what no client is at fault for', () => {
    for (const error of [new Error('x'), new SluiceError('SLUICE_PROTOCOL', { problem: 'x' }), undefined, 'x']) {
      expect(answerToError(error)).toBeUndefined()
    }
  })

  it('answers what handlers threw themselves', () => {
    expect(answerToError(notFound('such thing'))).toMatchObject({ status: 404 })
    const answer = answerToError(invalidRequest({ path: '/a', received: 'b', expected: 'c' }))!
    expect(JSON.parse(answer.body)).toMatchObject({
      status: 400,
      errors: [{ path: '/a', received: 'b', expected: 'c' }],
    })
  })
})

describe('placedError', () => {
  it('moves the places of problems, and nothing else', () => {
    const wrong = new RuleSetError([{ path: '/0/limit', received: '0', expected: '1', line: 3 }])
    const error = placedError(wrong, (path) => `/overrides${path}`)
    expect(JSON.parse(answerToError(error)!.body).errors).toEqual([
      { path: '/overrides/0/limit', received: '0', expected: '1', line: 3 },
    ])
    const other = new Error('x')
    expect(placedError(other, (path) => path)).toBe(other)
  })
})
