import { describe, expect, it } from 'vitest'
import { ERROR_CODES, isSluiceError, SluiceError } from './errors.ts'

describe('an error', () => {
  it('says what was wrong, what came, what was expected and what to do', () => {
    const cause = new Error('below')
    const error = new SluiceError('SLUICE_INVALID_OPTION', {
      problem: 'it is wrong',
      received: 5,
      expected: 'six',
      action: 'Add one.',
      cause,
    })
    expect(error.message).toBe('SLUICE_INVALID_OPTION: it is wrong; received 5; expected six. Add one.')
    expect(error).toMatchObject({
      name: 'SluiceError',
      code: 'SLUICE_INVALID_OPTION',
      received: 5,
      expected: 'six',
      cause,
    })
    expect(error).toBeInstanceOf(Error)
  })

  it.each([
    [undefined, 'undefined'],
    [null, 'null'],
    [true, 'true'],
    [-0.5, '-0.5'],
    [7n, '7n'],
    ['a "quoted"\ntext', '"a \\"quoted\\"\\ntext"'],
    ['x'.repeat(61), `"${'x'.repeat(60)}"... (61 characters)`],
    [[1, 2], 'an array of 2'],
    [{ a: 1, b: 2 }, 'an object with a, b'],
    [{}, 'an object with no properties'],
    [() => 1, 'a function'],
    [Symbol('s'), 'a symbol'],
  ])('pictures %s on one short line', (received, picture) => {
    const error = new SluiceError('SLUICE_INVALID_COST', { problem: 'no', received })
    expect(error.message).toBe(`SLUICE_INVALID_COST: no; received ${picture}.`)
  })

  it('does not mention what was not received', () => {
    expect(new SluiceError('SLUICE_CLOSED', { problem: 'closed' }).message).toBe('SLUICE_CLOSED: closed.')
  })
})

describe('isSluiceError', () => {
  it('goes by the code, so that another copy of the package does not matter', () => {
    const error = new SluiceError('SLUICE_CLOSED', { problem: 'closed' })
    const twin = Object.assign(new Error('closed'), { code: 'SLUICE_CLOSED' })
    for (const one of [error, twin]) {
      expect([
        isSluiceError(one),
        isSluiceError(one, 'SLUICE_CLOSED'),
        isSluiceError(one, 'SLUICE_INVALID_KEY'),
      ]).toEqual([true, true, false])
    }
  })

  it.each([[undefined], [null], ['SLUICE_CLOSED'], [{ code: 'SLUICE_CLOSED' }], [new Error('no')]])(
    'is not %s',
    (value) => {
      expect(isSluiceError(value)).toBe(false)
    },
  )

  it('is not an error with a code of another library, or of Object', () => {
    for (const code of ['ENOENT', 'toString', 20])
      expect(isSluiceError(Object.assign(new Error('no'), { code }))).toBe(false)
  })

  it('knows every code by its prefix', () => {
    expect(Object.keys(ERROR_CODES).filter((code) => !/^SLUICE_[A-Z_]+$/.test(code))).toEqual([])
  })
})
