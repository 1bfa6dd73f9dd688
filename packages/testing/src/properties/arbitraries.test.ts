import { ALGORITHMS, compileRule } from '@sluice/core/internal'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { replay } from '../suites/algorithm/replay.ts'
import type { AlgorithmName } from './arbitraries.ts'
import { callSequences, keys, rules } from './arbitraries.ts'
import { OPERATION_RULES, operations, RULES_OF } from './differential.ts'

const names = Object.keys(ALGORITHMS) as AlgorithmName[]

describe('arbitrary rules', () => {
  it.each(names)('of %s are valid, and decided by it', (name) => {
    fc.assert(
      fc.property(rules(name), (rule) => {
        expect(compileRule('rule', rule)).toMatchObject([{ algorithm: name }])
      }),
    )
  })
})

describe('arbitrary sequences', () => {
  it.each(names)('of %s meet all three rulings', (name) => {
    const met = new Set<string>()
    fc.assert(
      fc.property(callSequences(name), (sequence) => {
        for (const { verdict, ask } of replay(sequence)) {
          met.add(verdict.ruling)
          expect(Number.isSafeInteger(ask.now)).toBe(true)
        }
      }),
      { numRuns: 100, seed: 1 },
    )
    expect([...met].sort()).toEqual(['allowed', 'limit', 'never'])
  })
})

describe('arbitrary keys', () => {
  it('are accepted by every limiter', () => {
    fc.assert(fc.property(keys(), (key) => key.length >= 1 && key.length <= 4096))
  })
})

describe('arbitrary operations', () => {
  it('are of every kind and rule', () => {
    const met = new Set<string>()
    for (const sequence of fc.sample(operations(), { numRuns: 200, seed: 1 })) {
      for (const operation of sequence)
        met.add('rule' in operation ? operation.rule : operation.kind).add(operation.kind)
    }
    const kinds = [
      'advance',
      'check',
      'peek',
      'checkAll',
      'reserve',
      'settle',
      'renew',
      'refund',
      'adjust',
      'block',
      'unblock',
      'reset',
    ]
    expect([...met].sort()).toEqual([...kinds, ...Object.keys(OPERATION_RULES)].sort())
  })

  it('know which algorithm decides which rule', () => {
    for (const [name, of] of Object.entries(RULES_OF)) {
      for (const rule of of) {
        for (const limit of compileRule('rule', OPERATION_RULES[rule]))
          expect([rule, limit.algorithm]).toEqual([rule, name])
      }
    }
    expect(Object.values(RULES_OF).flat().sort()).toEqual(Object.keys(OPERATION_RULES).sort())
  })
})
