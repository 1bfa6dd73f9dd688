import { expect, test } from 'vitest'
import { ChangedKeys } from './deny-cache-store.ts'

test('tells the keys that were changed since, and no others', () => {
  const changes = new ChangedKeys()
  changes.note('a')
  const { count } = changes
  expect(changes.changedSince(count, 'a')).toBe(false)
  changes.note('b')
  expect(['a', 'b', 'c'].map((key) => changes.changedSince(count, key))).toEqual([false, true, false])
  expect(changes.changedSince(0, 'a')).toBe(true)
})

test('takes every key for changed when it has forgotten', () => {
  const changes = new ChangedKeys()
  const { count } = changes
  for (let change = 0; change < 4096; change++) changes.note(`key-${change % 2000}`)
  expect(changes.changedSince(count, 'other')).toBe(false)
  expect(changes.changedSince(count, 'key-0')).toBe(true)
  changes.note('key-1')
  expect(changes.changedSince(count, 'other')).toBe(true)
  expect(changes.changedSince(count + 1, 'other')).toBe(false)
  expect(changes.changedSince(count + 4001, 'key-0')).toBe(false)
})
