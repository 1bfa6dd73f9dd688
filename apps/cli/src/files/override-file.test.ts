import type { Override } from '@sluice/contract'
import { describe, expect, it } from 'vitest'
import { inBatches, readOverrides } from './override-file.ts'

const ONE: Override = { dimension: 'user', entity: 'u1', resource: '*', terms: { limit: 5 } }

describe('readOverrides', () => {
  it.each([
    ['a list in YAML', 'a.yaml', '- { dimension: user, entity: u1, resource: "*", terms: { limit: 5 } }'],
    [
      'the same below "overrides"',
      'a.yml',
      'overrides:\n  - { dimension: user, entity: u1, resource: "*", terms: { limit: 5 } }',
    ],
    ['JSON', 'a.json', JSON.stringify([ONE])],
    ['JSON in lines', 'a.ndjson', `\n${JSON.stringify(ONE)}\n\n`],
    ['the same by its other name', 'a.jsonl', JSON.stringify(ONE)],
  ])('reads %s', (_, path, text) => {
    expect(readOverrides(text, path)).toEqual([ONE])
  })

  it('turns dates into instants in lines, too', () => {
    const [read] = readOverrides(JSON.stringify({ ...ONE, expiresAt: '2027-01-01' }), 'a.ndjson')
    expect(read?.expiresAt).toBe(Date.UTC(2027, 0, 1))
  })
})

describe('inBatches', () => {
  it('makes parts of ten thousand', () => {
    const many = Array.from({ length: 20_001 }, () => ONE)
    expect(inBatches(many).map(({ length }) => length)).toEqual([10_000, 10_000, 1])
  })

  it('makes parts that fit into a request', () => {
    const large = Array.from({ length: 9 }, (_, index) => ({ ...ONE, entity: String(index).repeat(2_000_000) }))
    const parts = inBatches(large)
    expect(parts.map((part) => part.map(({ entity }) => Number(entity[0])))).toEqual([
      [0, 1, 2],
      [3, 4, 5],
      [6, 7, 8],
    ])
    expect(Math.max(...parts.map((part) => JSON.stringify(part).length))).toBeLessThan(8_388_608)
  })
})
