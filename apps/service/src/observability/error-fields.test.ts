import { SluiceError } from '@sluice/core'
import { RuntimeError } from '@sluice/runtime'
import { describe, expect, it } from 'vitest'
import { ServiceError } from '../service-error.ts'
import { errorFields } from './error-fields.ts'

describe('errorFields', () => {
  it('leaves out what an error of ours received', () => {
    const errors = [
      new SluiceError('SLUICE_INVALID_KEY', {
        problem: 'the key cannot be used',
        received: 'ann@example.com',
        expected: 'a text',
      }),
      new RuntimeError('SLUICE_RUNTIME_INVALID_OPTION', {
        received: 'ann@example.com',
        expected: 'a number',
        action: 'Do.',
      }),
      new ServiceError('SLUICE_SERVICE_INVALID_SETTING', { received: 'ann@example.com', expected: 'x', action: 'Do.' }),
    ]
    expect(errors.map((error) => errorFields(error))).toEqual([
      { name: 'SluiceError', code: 'SLUICE_INVALID_KEY', message: 'SLUICE_INVALID_KEY: the key cannot be used' },
      {
        name: 'RuntimeError',
        code: 'SLUICE_RUNTIME_INVALID_OPTION',
        message: 'SLUICE_RUNTIME_INVALID_OPTION: an option or argument is out of its range',
      },
      {
        name: 'ServiceError',
        code: 'SLUICE_SERVICE_INVALID_SETTING',
        message: 'SLUICE_SERVICE_INVALID_SETTING: a setting has a value that cannot be used',
      },
    ])
  })

  it('says where an unforeseen error came from, and nothing that was hung on it', () => {
    const error = Object.assign(new TypeError('x is not a function\n    second line'), {
      code: 'ERR_X',
      command: { args: ['ann@example.com'] },
      detail: 'Key (entity)=(ann@example.com)',
    })
    const fields = errorFields(error)
    expect(fields).toEqual({
      name: 'TypeError',
      code: 'ERR_X',
      message: 'x is not a function\n    second line',
      stack: expect.stringMatching(/^ {4}at .*error-fields\.test\.ts/),
    })
    expect(JSON.stringify(fields)).not.toContain('ann@example.com')
  })

  it('follows causes, but not for ever', () => {
    const circular = new Error('one')
    circular.cause = circular
    let depth = 0
    for (let fields = errorFields(circular) as { cause?: never }; fields !== undefined; fields = fields.cause!) depth++
    expect(depth).toBe(4)
    const cause = new SluiceError('SLUICE_CLOSED', { problem: 'closed', received: 'ann' })
    expect(errorFields(new Error('outer', { cause }))).toMatchObject({ cause: { code: 'SLUICE_CLOSED' } })
  })

  it.each([
    ['text', 'string'],
    [undefined, 'undefined'],
    [null, 'object'],
    [{ user: 'ann' }, 'object'],
  ])('says of %j that it is no error', (thrown, type) => {
    expect(errorFields(thrown)).toEqual({ type })
  })

  it('cuts long messages', () => {
    expect(String(errorFields(new Error('x'.repeat(5000)))['message'])).toHaveLength(1000)
  })
})
