import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BlockTable } from './block-table.ts'
import type { Block } from './live-entry.ts'

function block(entity: string, until: number, more: Partial<Block> = {}): Block {
  return { dimension: 'ip', entity, until, strikes: 1, forgottenAt: until + 100, rule: 'login', ...more }
}

function byHand(entity: string, until: number): Block {
  const { rule: _rule, ...rest } = block(entity, until)
  return rest
}

const namesOf = (blocks: readonly Block[]): string[] => blocks.map(({ entity }) => entity)

describe('a table of blocks', () => {
  it('remembers a block until it is forgotten, and drops it then', () => {
    const table = new BlockTable(10)
    const given = block('a', 50)
    table.put(given, 0)
    expect(table.find('ip', 'a', 149)).toBe(given)
    expect(table.find('ip', 'b', 0)).toBeUndefined()
    expect(table.find('user', 'a', 0)).toBeUndefined()
    expect(table.find('ip', 'a', 150)).toBeUndefined()
    expect(table.size).toBe(0)
  })

  it('remembers a block as long as it lasts, also when its strikes are forgotten before', () => {
    const table = new BlockTable(10)
    table.put(block('a', 50, { forgottenAt: 0 }), 0)
    expect(table.find('ip', 'a', 49)).toBeDefined()
    expect(table.find('ip', 'a', 50)).toBeUndefined()
  })

  it('lists the blocks that have not ended, the soonest to end first', () => {
    const table = new BlockTable(10)
    for (const [entity, until] of Object.entries({ a: 30, b: 10, c: 20, d: 40 })) table.put(block(entity, until), 0)
    table.put({ ...byHand('e', 15), dimension: 'user' }, 0)
    expect(namesOf(table.active(0))).toEqual(['b', 'e', 'c', 'a', 'd'])
    expect(namesOf(table.active(20))).toEqual(['a', 'd'])
    expect(table.size).toBe(5)
    expect(namesOf(table.active(120))).toEqual([])
    expect(table.size).toBe(2)
  })

  it('drops what is forgotten by itself as others come', () => {
    const table = new BlockTable(1000)
    for (let nowMs = 0; nowMs < 10_000; nowMs++) {
      table.put(nowMs % 2 === 0 ? block(`a${nowMs}`, nowMs + 10) : byHand(`a${nowMs}`, nowMs + 10), nowMs)
    }
    expect(table.size).toBe(110)
    expect(table.dropped).toBe(0)
  })

  it('drops the block that ends soonest when there are too many, and counts it', () => {
    const table = new BlockTable(2)
    table.put(block('a', 30), 0)
    table.put(block('b', 10), 0)
    table.put(block('c', 20), 0)
    expect(namesOf(table.active(0))).toEqual(['c', 'a'])
    table.put(block('d', 5), 0)
    expect(namesOf(table.active(0))).toEqual(['d', 'a'])
    expect(table.dropped).toBe(2)
  })

  it('gives up nothing for another block of the same entity', () => {
    const table = new BlockTable(2)
    table.put(block('a', 30), 0)
    table.put(block('b', 10), 0)
    table.put(block('a', 40, { strikes: 2 }), 0)
    expect(namesOf(table.active(0))).toEqual(['b', 'a'])
    expect(table.dropped).toBe(0)
  })

  it('never drops a block that was set by hand for one that a rule led to', () => {
    const table = new BlockTable(2)
    for (const entity of ['x', 'y', 'z']) table.put(byHand(entity, 5), 0)
    for (let index = 0; index < 10; index++) table.put(block(`a${index}`, 10 + index), 0)
    expect(namesOf(table.active(0))).toEqual(['x', 'y', 'z', 'a8', 'a9'])
    expect(table.dropped).toBe(8)
  })

  it('does not keep what is forgotten already, and takes it for the end of the one before', () => {
    const table = new BlockTable(10)
    table.put(block('a', 500), 0)
    table.put(block('a', 5, { forgottenAt: 10 }), 10)
    expect(table.size).toBe(0)
  })

  it('lifts a block', () => {
    const table = new BlockTable(10)
    table.put(block('a', 50), 0)
    expect(table.remove('ip', 'a')).toBe(true)
    expect(table.find('ip', 'a', 0)).toBeUndefined()
    expect(table.remove('ip', 'a')).toBe(false)
  })
})

describe('blocks made by this process', () => {
  it('outlive a reload that does not know them, until they are lifted', () => {
    const table = new BlockTable(10)
    table.put(block('a', 50), 0)
    table.putOwn(block('b', 60), 0)
    table.beginReload()
    table.endReload()
    expect(namesOf(table.active(0))).toEqual(['b'])
    table.remove('ip', 'b')
    expect(table.size).toBe(0)
  })

  it('are like any other once the configuration has them', () => {
    const table = new BlockTable(10)
    table.putOwn(block('a', 50), 0)
    table.put(block('a', 50), 0)
    table.beginReload()
    table.endReload()
    expect(table.size).toBe(0)
  })

  it('stay when older news of a rule comes in, and go for what was set by hand', () => {
    const table = new BlockTable(10)
    const own = block('a', 50, { strikes: 2 })
    table.putOwn(own, 0)
    table.put(block('a', 20, { strikes: 1 }), 0)
    expect(table.find('ip', 'a', 0)).toBe(own)
    const newer = block('a', 90, { strikes: 3 })
    table.put(newer, 0)
    expect(table.find('ip', 'a', 0)).toBe(newer)
    table.putOwn(own, 0)
    const set = byHand('a', 5)
    table.put(set, 0)
    expect(table.find('ip', 'a', 0)).toBe(set)
  })

  it('do not stand in the way of news when they are forgotten', () => {
    const table = new BlockTable(10)
    table.putOwn(block('a', 50, { strikes: 2 }), 0)
    const news = block('a', 500, { strikes: 1 })
    table.put(news, 150)
    expect(table.find('ip', 'a', 150)).toBe(news)
  })
})

it('a table of blocks holds what a list that is gone through holds', () => {
  const steps = fc.array(
    fc.record({
      entity: fc.nat(15).map((index) => `a${index}`),
      // Ends differ from each other: which of two that end together goes is open.
      lasts: fc.nat(40),
      rule: fc.constantFrom('login', 'login', undefined),
      removes: fc.constantFrom(false, false, false, true),
      wait: fc.nat(3),
    }),
    { maxLength: 100, size: 'max' },
  )
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 14 }), (all, most) => {
      const table = new BlockTable(most)
      let list: Block[] = []
      let nowMs = 0
      for (const [index, { entity, lasts, rule, removes, wait }] of all.entries()) {
        nowMs += wait
        const until = nowMs + lasts + index / 1000
        list = list.filter((each) => each.entity !== entity && each.forgottenAt > nowMs)
        if (removes) table.remove('ip', entity)
        else {
          const rules = list.filter((each) => each.rule !== undefined).sort((one, other) => one.until - other.until)
          if (rule !== undefined && rules.length >= most) list = list.filter((each) => each !== rules[0])
          const { rule: _rule, ...plain } = block(entity, until, { forgottenAt: until })
          const given = rule === undefined ? plain : { ...plain, rule }
          list.push(given)
          table.put(given, nowMs)
        }
        const active = list.filter((each) => each.until > nowMs).sort((one, other) => one.until - other.until)
        expect(table.active(nowMs)).toEqual(active)
        expect([table.size, table.isEmpty]).toEqual([active.length, active.length === 0])
      }
    }),
    { numRuns: 1000 },
  )
})
