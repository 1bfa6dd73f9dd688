import { describe, expect, it } from 'vitest'
import { BlockList } from './block-list.ts'

describe('a block list', () => {
  it('says until when, and forgets what is over', () => {
    const blocks = new BlockList()
    blocks.set('rule', 'key', { until: 100, now: 0 })
    expect([blocks.until('rule', 'key', 99), blocks.size]).toEqual([100, 1])
    expect([blocks.until('rule', 'other', 99), blocks.until('other', 'key', 99)]).toEqual([0, 0])
    expect([blocks.until('rule', 'key', 100), blocks.size]).toEqual([0, 0])
  })

  it('replaces and lifts', () => {
    const blocks = new BlockList()
    blocks.set('rule', 'key', { until: 100, now: 0 })
    blocks.set('rule', 'key', { until: 50, now: 0 })
    expect([blocks.until('rule', 'key', 0), blocks.size]).toEqual([50, 1])
    blocks.lift('rule', 'key')
    blocks.lift('rule', 'key')
    expect([blocks.until('rule', 'key', 0), blocks.size]).toEqual([0, 0])
  })

  it('is full at a million blocks in force; expired ones make room, and those in the list can be changed', () => {
    const blocks = new BlockList()
    for (let index = 0; index < 1_000_000; index++) {
      blocks.set('rule', String(index), { until: index < 10 ? 50 : 100, now: 0 })
    }
    const one = (): void => blocks.set('rule', 'one more', { until: 100, now: 49 })
    expect(one).toThrow(expect.objectContaining({ code: 'SLUICE_STORE_FULL', received: 1_000_000 }))
    blocks.set('rule', '999999', { until: 200, now: 49 })
    expect(blocks.until('rule', '999999', 150)).toBe(200)
    blocks.set('rule', 'one more', { until: 100, now: 50 })
    expect([blocks.until('rule', 'one more', 50), blocks.size]).toEqual([100, 999_991])
  })
})
