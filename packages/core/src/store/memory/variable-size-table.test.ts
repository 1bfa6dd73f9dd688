import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { VariableSizeTable } from './variable-size-table.ts'

const NOW = 100

describe('a list table', () => {
  it('drops the key that has used least, by what it has used last', () => {
    const table = new VariableSizeTable(4)
    const write = (key: string, used: number): boolean =>
      table.write(key, [used], { expirySeconds: 1000, used, nowSeconds: NOW })
    for (const [key, used] of [
      ['a', 10],
      ['b', 100],
      ['c', 200],
      ['d', 255],
    ] as const)
      write(key, used)
    // Who was light is heavy now, and the other way round.
    write('a', 250)
    write('c', 20)
    expect([write('e', 150), table.read('c')]).toEqual([true, undefined])
    expect([write('f', 150), table.read('b')]).toEqual([true, undefined])
    expect([write('g', 255), table.read('e')]).toEqual([true, undefined])
    expect([write('h', 255), table.read('f')]).toEqual([true, undefined])
    expect([write('i', 255), table.read('a')]).toEqual([true, undefined])
    expect([write('j', 1), table.read('j'), table.size, table.evictions]).toEqual([false, undefined, 4, 5])
    // A key that is there can always be written.
    expect([write('d', 3), table.read('d')]).toEqual([true, [3]])
    expect([write('j', 1), table.read('d')]).toEqual([true, undefined])
  })

  it('frees what has expired before it drops what is in use', () => {
    const table = new VariableSizeTable(4)
    for (const [key, expirySeconds] of [
      ['a', 50],
      ['b', 1000],
      ['c', 99],
      ['d', 100],
    ] as const) {
      table.write(key, [1], { expirySeconds, used: 200, nowSeconds: 0 })
    }
    for (const key of ['e', 'f']) table.write(key, [1], { expirySeconds: 1000, used: 0, nowSeconds: NOW })
    expect(['a', 'b', 'c', 'd', 'e', 'f'].filter((key) => table.read(key) !== undefined)).toEqual(['b', 'd', 'e', 'f'])
    expect(table.evictions).toBe(0)
  })

  it('remembers what was written and not removed, as long as there is room', () => {
    const operation = fc.record({
      key: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
      used: fc.nat(255),
      removes: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 60 }), (operations) => {
        const table = new VariableSizeTable(100)
        const known = new Map<string, number[]>()
        for (const { key, used, removes } of operations) {
          if (removes) table.remove(key)
          else table.write(key, [used], { expirySeconds: 1000, used, nowSeconds: NOW })
          if (removes) known.delete(key)
          else known.set(key, [used])
        }
        expect(table.size).toBe(known.size)
        for (const key of ['a', 'b', 'c', 'd', 'e']) expect(table.read(key)).toEqual(known.get(key))
        expect(table.evictions).toBe(0)
      }),
    )
  })
})
