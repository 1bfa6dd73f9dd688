import { describe, expect, it } from 'vitest'
import { placedProblem } from './problems.ts'

/** Of a rule set with four rules of which the last two are in the body. */
function placeOf(path: string): string | undefined {
  const index = Number(/^\/rules\/(\d+)/.exec(path)?.[1] ?? -1) - 2
  return index < 0 ? undefined : path.replace(/\d+/, String(index))
}

describe('a problem', () => {
  it('names places as they are in the body, also within its strings', () => {
    const problem = {
      path: '/rules/3/name',
      received: 'as in /rules/2',
      expected: 'not /rules/2/name, or "x"',
      line: 7,
    }
    expect(placedProblem(problem, placeOf)).toEqual({
      path: '/rules/1/name',
      received: 'as in /rules/0',
      expected: 'not /rules/0/name, or "x"',
      line: 7,
    })
  })

  it('says what is not in the body', () => {
    const problem = { path: '/tiers/0/rules/1', received: 'a name', expected: 'another than that of /rules/1' }
    expect(placedProblem(problem, placeOf)).toEqual({
      path: '',
      received: 'a name, at /tiers/0/rules/1 of the enforced rules',
      expected: 'another than that of /rules/1 of the enforced rules',
    })
  })

  it('leaves resources and names alone that look like places', () => {
    const problem = { path: '/rules/2', received: 'a rule for "/rules/3"', expected: 'no https://example.com/rules/3' }
    expect(placedProblem(problem, placeOf)).toEqual({ ...problem, path: '/rules/0' })
  })
})
