import { RULE_OPTIONS } from '@sluice/core/internal'
import { checkRuleSet } from '@sluice/core/policy'
import { describe, expect, it } from 'vitest'
import type { AlgorithmName } from './rule-fields.ts'
import {
  ALGORITHM_CHOICES,
  fieldsOf,
  fieldText,
  typedValue,
  withAlgorithm,
  withOption,
  withSeveralWindows,
} from './rule-fields.ts'

const RULE = { resource: '/orders', dimension: 'user', limit: 100, window: '1m', burst: 120, shadow: true }

const ALGORITHMS = Object.keys(RULE_OPTIONS) as AlgorithmName[]

describe('algorithms', () => {
  it('offers each of the core', () => {
    expect(ALGORITHM_CHOICES.map(({ value }) => value).toSorted()).toEqual(ALGORITHMS.toSorted())
  })

  it.each(ALGORITHMS.flatMap((from) => ALGORITHMS.map((to) => [from, to] as const)))(
    'from %s to %s is a rule that can be used',
    (from, to) => {
      const changed = withAlgorithm(withAlgorithm(RULE, from), to)
      expect(checkRuleSet({ rules: [changed] })).toEqual([])
      expect(changed).toMatchObject({ resource: '/orders', dimension: 'user', shadow: true })
      expect(changed['algorithm'] ?? 'gcra').toBe(to)
    },
  )

  it('keeps what both have', () => {
    expect(withAlgorithm(RULE, 'sliding-window-log')).toEqual({ ...RULE, algorithm: 'sliding-window-log' })
    expect(withAlgorithm({ ...RULE, burst: 20 }, 'token-bucket')).not.toHaveProperty('limit')
  })
})

describe('fields', () => {
  it('shows one window or several', () => {
    expect(fieldsOf(RULE).map(({ name }) => name)).toEqual(['limit', 'window', 'burst'])
    const several = withSeveralWindows(RULE, true)
    expect(fieldsOf(several).map(({ name }) => name)).toEqual(['windows'])
    expect(several['windows']).toEqual([{ limit: 100, window: '1m', burst: 120 }])
    expect(withSeveralWindows(several, false)).toEqual(RULE)
  })

  it('reads what is typed', () => {
    expect(typedValue('units', '100')).toBe(100)
    expect(typedValue('units', 'off')).toBe('off')
    expect(typedValue('ratePerSecond', '0.5')).toBe(0.5)
    expect(typedValue('duration', '10')).toBe('10')
    expect(typedValue('units', ' ')).toBeUndefined()
    expect(fieldText(undefined)).toBe('')
    expect(fieldText({ calendar: 'month' })).toBe('{"calendar":"month"}')
  })

  it('removes an option', () => {
    expect(withOption(RULE, 'burst', undefined)).not.toHaveProperty('burst')
    expect(withOption(RULE, 'limit', 5)).toEqual({ ...RULE, limit: 5 })
  })
})
