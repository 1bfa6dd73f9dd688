import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
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
        expected: 'a string',
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

  it('leaves out where a failure of the system came from', () => {
    const error = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), {
      code: 'ECONNREFUSED',
      syscall: 'connect',
    })
    expect(errorFields(error)).toEqual({ name: 'Error', code: 'ECONNREFUSED', message: error.message })
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

/** Where something is written into the log, from there to the end of the call. */
function logCallsIn(source: string): readonly string[] {
  const calls = source.matchAll(/\blog(?:\[\w+\]|\.(?:debug|info|warn|error))\(/g)
  return Array.from(calls, ({ index, 0: start }) => {
    let depth = 1
    let end = index + start.length
    for (; depth > 0 && end < source.length; end++) {
      if (source[end] === '(') depth++
      else if (source[end] === ')') depth--
    }
    return source.slice(index, end)
  })
}

/** Whether an error goes into the log as it is: `{ error }`, or `error:` with anything but its fields. */
function hasRawError(call: string): boolean {
  return /[{,]\s*(?:error|cause)\s*[,}]|\b(?:error|cause):(?!\s*errorFields\()/.test(call)
}

describe('the log of the service', () => {
  const folder = join(import.meta.dirname, '..')
  const calls = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !/\.(?:test|fixture)\./.test(path))
    .flatMap((path) => logCallsIn(readFileSync(join(folder, path), 'utf8')).map((call) => ({ path, call })))

  it('is never given an error as it is', () => {
    expect(calls.length).toBeGreaterThan(30)
    expect(calls.filter(({ call }) => hasRawError(call))).toEqual([])
  })

  it.each([
    ["log.warn('x', { error })", true],
    ["log.warn('x', { a: 1, error, b })", true],
    ["log.error('x', { error: event.error })", true],
    ["log.error('x', { error: errorFields(event.error) })", false],
    ["log.error('x')", false],
  ])('%s is seen for what it is', (source, isRaw) => {
    expect(logCallsIn(`first(); ${source}; last({ error })`).map(hasRawError)).toEqual([isRaw])
  })
})
