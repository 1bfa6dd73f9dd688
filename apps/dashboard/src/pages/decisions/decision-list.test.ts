import type { DecisionRecord } from '@sluice/contract'
import { expect, it } from 'vitest'
import { countedText, MOST_ROWS, withNewer } from './decision-list.ts'

function decision(id: string, at: number): DecisionRecord {
  return { id, at, dimension: 'user', caller: 'ada', hidden: [] } as unknown as DecisionRecord
}

it('puts the newest first, and each once', () => {
  const known = withNewer([], [decision('a', 1), decision('b', 2)])
  expect(known.map(({ id }) => id)).toEqual(['b', 'a'])
  expect(withNewer(known, [decision('b', 2), decision('c', 3)]).map(({ id }) => id)).toEqual(['c', 'b', 'a'])
  expect(withNewer(known, [decision('a', 1)])).toBe(known)
})

it('keeps the newest rows only', () => {
  const many = Array.from({ length: MOST_ROWS + 50 }, (_, index) => decision(String(index), index))
  const kept = withNewer([], many)
  expect(kept).toHaveLength(MOST_ROWS)
  expect(kept[0]!.at).toBe(MOST_ROWS + 49)
})

it('says who was counted', () => {
  expect(countedText(decision('a', 1))).toBe('user ada')
  expect(countedText({ ...decision('a', 1), dimension: 'global' })).toBe('all callers')
  expect(countedText({ ...decision('a', 1), dimension: '' })).toBe('no rule applied')
  expect(countedText({ ...decision('a', 1), dimension: 'apiKey', caller: '7f', hidden: ['apiKey'] })).toBe(
    'apiKey digest 7f',
  )
})
