import type { RuleSet } from '@sluice/core/policy'
import { describe, expect, it } from 'vitest'
import { changesOf, isValid, openDocument, problemsOfRule, withRule, withText, withValue } from './rule-document.ts'

const ruleSet: RuleSet = {
  rules: [
    { resource: '/orders', dimension: 'user', limit: 100, window: '1m' },
    { resource: '*', dimension: 'ip', limit: 1000, window: '1m' },
  ],
}

const opened = openDocument({ version: 3, ruleSet })

describe('one document', () => {
  it('says what is enforced, in both forms', () => {
    expect(isValid(opened)).toBe(true)
    expect(opened.text).toContain('- resource: "*"\n    dimension: ip\n')
    expect(changesOf(opened)).toEqual([])
  })

  it('shows an edit of the form in the text, and one of the text in the form', () => {
    const inForm = withRule(opened, 0, { ...opened.value.rules[0], limit: 50 })
    expect(inForm.text).toContain('limit: 50')
    const inText = withText(inForm, inForm.text.replace('limit: 50', 'limit: 60 # less'))
    expect(inText.value.rules[0]).toMatchObject({ limit: 60 })
    expect(changesOf(inText)).toMatchObject([
      { change: 'changed', part: 'rules', name: '/orders@user', before: { limit: 100 }, after: { limit: 60 } },
    ])
  })

  it('adds behind the last rule, and removes', () => {
    const login = { resource: '/login', dimension: 'ip', limit: 5, window: '1m' }
    const added = withRule(opened, 2, login)
    expect(changesOf(added)).toEqual([
      { change: 'added', part: 'rules', name: '/login@ip', before: undefined, after: login },
    ])
    expect(changesOf(withRule(added, 2, undefined))).toEqual([])
  })

  it('keeps the value while the text cannot be read', () => {
    const broken = withText(opened, 'rules:\n  - resource: *\n')
    expect(broken.value).toBe(opened.value)
    expect(broken.textProblem).toEqual({ message: expect.stringContaining('must be in quotes'), line: 2 })
    expect(isValid(broken)).toBe(false)
    expect(changesOf(broken)).toEqual([])
    expect(withText(broken, 'limits: []').textProblem).toMatchObject({ line: 1 })
  })
})

describe('validation', () => {
  it('finds the field of a problem', () => {
    const wrong = withRule(opened, 1, { ...opened.value.rules[1], window: '1 fortnight' })
    expect(isValid(wrong)).toBe(false)
    expect([...problemsOfRule(wrong, 1).keys()]).toEqual(['/window'])
    expect(problemsOfRule(wrong, 0).size).toBe(0)
  })

  it('finds the line of a problem, also of something that is missing', () => {
    const wrong = withText(opened, 'rules:\n  - resource: /a\n    dimension: user\n    limit: many\n    window: 1m\n')
    expect(wrong.problems).toMatchObject([{ path: '/rules/0/limit', line: 4 }])
    const missing = withText(opened, 'rules:\n  - resource: /a\n    limit: 1\n    window: 1m\n')
    expect(missing.problems).toMatchObject([{ path: '/rules/0/dimension', line: 2 }])
  })

  it('finds two rules of one name', () => {
    const twice = withValue(opened, { rules: [...opened.value.rules, ...opened.value.rules] })
    expect(problemsOfRule(twice, 2).size).toBe(1)
  })
})
