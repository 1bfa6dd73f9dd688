import { describe, expect, it } from 'vitest'
import { MatchCache } from './match-cache.ts'

/** Asks, and adds what was not found; whether it was. */
function ask(map: MatchCache<string>, key: string, kind = 0): boolean {
  const found = map.get(kind, key)
  if (found === undefined) map.add(kind, key, key)
  return found !== undefined
}

describe('MatchCache', () => {
  it('finds what was added, by kind', () => {
    const map = new MatchCache<string>(2, 8)
    map.add(0, 'a', 'first')
    map.add(1, 'a', 'second')
    expect([map.get(0, 'a'), map.get(1, 'a'), map.get(0, 'b')]).toEqual(['first', 'second', undefined])
  })

  it('never holds more than its capacity, of all kinds together', () => {
    const map = new MatchCache<string>(3, 8)
    let most = 0
    for (let index = 0; index < 1000; index++) {
      ask(map, `key ${index % 50}`, index % 3)
      most = Math.max(most, map.size)
    }
    expect(most).toBe(8)
  })

  it('keeps what is used again and again, and forgets the rest', () => {
    const map = new MatchCache<string>(1, 64)
    for (let index = 0; index < 500; index++) {
      expect(ask(map, 'often')).toBe(index > 0)
      expect(ask(map, 'often too')).toBe(index > 0)
      expect(ask(map, `once ${index}`)).toBe(false)
    }
    expect(map.get(0, 'once 0')).toBeUndefined()
  })

  it('looks at one lookup in eight while nothing is used again', () => {
    const map = new MatchCache<string>(1, 1024)
    for (let index = 0; index < 512; index++) ask(map, `before ${index}`)
    expect(map.size).toBe(512)
    // The next question is the one at which it sees that nothing is found.
    for (let index = 0; index <= 800; index++) ask(map, `after ${index}`)
    expect(map.size).toBe(512 + 1 + 100)
  })

  it('notices when something is used again', () => {
    const map = new MatchCache<string>(1, 16)
    // The ninth is the one at which it sees that nothing is found: from then on the eighth of each eight is looked at.
    for (let index = 0; index < 9; index++) ask(map, `once ${index}`)
    const found = Array.from({ length: 80 }, () => ask(map, 'often'))
    const looked = [15, 23, 31, 39, 47, 55]
    const answered = found.flatMap((isFound, index) => (isFound ? [index] : []))
    // After eight such looks it sees that remembering pays, and looks at all.
    expect(answered).toEqual([...looked, ...Array.from({ length: 17 }, (_, index) => 63 + index)])
  })
})
