import { describe, expect, it } from 'vitest'
import { describeValue, isRuntimeError, RUNTIME_ERRORS, RuntimeAggregateError, RuntimeError } from './runtime-error.ts'

const details = { received: 'limit = -1', expected: 'zero or more', action: 'Correct limit.' }

describe('RuntimeError', () => {
  it('says in its message the code, what was received, what was expected and what to do', () => {
    const error = new RuntimeError('SLUICE_RUNTIME_INVALID_OPTION', details)
    expect(error.message).toBe(
      'SLUICE_RUNTIME_INVALID_OPTION: an option or argument is out of its range. ' +
        'Received limit = -1; expected zero or more. Correct limit.',
    )
    expect(error).toMatchObject({ name: 'RuntimeError', code: 'SLUICE_RUNTIME_INVALID_OPTION', ...details })
    expect(error.alsoFailed).toEqual([])
  })

  it('keeps the cause, and has none when none was given', () => {
    const cause = new TypeError('underneath')
    expect(new RuntimeError('SLUICE_RUNTIME_PART_START_FAILED', { ...details, cause }).cause).toBe(cause)
    expect('cause' in new RuntimeError('SLUICE_RUNTIME_INVALID_OPTION', details)).toBe(false)
  })

  it('keeps all failures of an aggregate', () => {
    const failures = [1, 2].map(() => new RuntimeError('SLUICE_RUNTIME_PART_STOP_FAILED', details))
    const error = new RuntimeAggregateError('SLUICE_RUNTIME_STOP_FAILED', failures, details)
    expect(error).toBeInstanceOf(AggregateError)
    expect(error.errors).toEqual(failures)
    expect(error).toMatchObject({ name: 'RuntimeAggregateError', code: 'SLUICE_RUNTIME_STOP_FAILED', ...details })
  })
})

describe('the catalogue', () => {
  it('has codes of one form and a different meaning for each', () => {
    const codes = Object.keys(RUNTIME_ERRORS)
    for (const code of codes) expect(code).toMatch(/^SLUICE_RUNTIME_[A-Z]+(_[A-Z]+)*$/)
    expect(new Set(Object.values(RUNTIME_ERRORS)).size).toBe(codes.length)
  })
})

describe('isRuntimeError', () => {
  const error = new RuntimeError('SLUICE_RUNTIME_RING_EMPTY', details)
  it.each([
    ['an error of the package', error, undefined, true],
    ['the right code', error, 'SLUICE_RUNTIME_RING_EMPTY', true],
    ['another code', error, 'SLUICE_RUNTIME_INVALID_ID', false],
    ['a copy that is no instance', { ...error, code: error.code }, 'SLUICE_RUNTIME_RING_EMPTY', true],
    ['an error of Node', Object.assign(new Error('no'), { code: 'ENOENT' }), undefined, false],
    ['a code that is not in the catalogue', { code: 'SLUICE_RUNTIME_NO_SUCH' }, undefined, false],
    ['a name every object has', { code: 'toString' }, undefined, false],
    ['null', null, undefined, false],
    ['text', 'SLUICE_RUNTIME_RING_EMPTY', undefined, false],
  ] as const)('%s', (_name, value, code, expected) => {
    expect(isRuntimeError(value, code)).toBe(expected)
  })
})

describe('describeValue', () => {
  it.each([
    ['text', '"text"'],
    ['x'.repeat(100), `"${'x'.repeat(80)}..."`],
    [Number.NaN, 'NaN'],
    [-0.5, '-0.5'],
    [12n, '12n'],
    [undefined, 'undefined'],
    [null, 'null'],
    [{ password: 'secret' }, 'an object'],
    [[1], 'an array'],
    [() => 1, 'a function'],
  ])('%s', (value, expected) => {
    expect(describeValue(value)).toBe(expected)
  })
})
