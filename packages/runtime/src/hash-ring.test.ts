import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HashRing } from './hash-ring.ts'

const KEYS = Array.from({ length: 100_000 }, (_, index) => `user:${index}`)

const NAMES: Record<string, (index: number) => string> = {
  'cache-n': (index) => `cache-${index}`,
  'addresses and ports': (index) => `10.0.${index}.7:8080`,
  'ports of one address': (index) => `http://127.0.0.1:${9000 + index}`,
  'long host names': (index) => `node-${index}.ratelimit.eu-west-1.internal.example.com`,
  'single letters': (index) => String.fromCharCode(97 + index),
  'bare digits': (index) => String(index),
  'other scripts': (index) => `сервер-${index}`,
}

function names(set: string, count: number): string[] {
  const nameOf = NAMES[set] as (index: number) => string
  return Array.from({ length: count }, (_, index) => nameOf(index))
}

function owners(ring: HashRing, keys: readonly string[] = KEYS): string[] {
  return keys.map((key) => ring.serverFor(key))
}

function countEach(values: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return counts
}

const serverNames = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 8 })
const someKeys = fc.array(fc.string({ unit: 'binary' }), { minLength: 1, maxLength: 50 })

describe('the spread of keys', () => {
  it.each(Object.keys(NAMES))('is within 15%% of even for 3 to 10 servers named by %s', (set) => {
    for (let count = 3; count <= 10; count++) {
      const counts = countEach(owners(new HashRing({ servers: names(set, count) })))
      const even = KEYS.length / count
      expect(counts.size).toBe(count)
      expect(Math.min(...counts.values()), `least of ${count}`).toBeGreaterThan(even * 0.85)
      expect(Math.max(...counts.values()), `most of ${count}`).toBeLessThan(even * 1.15)
    }
  })

  it('follows the weights', () => {
    const servers = [{ name: 'a' }, { name: 'b', weight: 2 }, { name: 'c', weight: 0.5 }]
    const counts = countEach(owners(new HashRing({ servers })))
    for (const [name, share] of Object.entries({ a: 2 / 7, b: 4 / 7, c: 1 / 7 })) {
      const part = (counts.get(name) ?? 0) / KEYS.length
      expect(part, name).toBeGreaterThan(share * 0.85)
      expect(part, name).toBeLessThan(share * 1.15)
    }
  })

  it('gets more even with more virtual nodes', () => {
    const unevenness = (virtualNodes: number): number => {
      const counts = [...countEach(owners(new HashRing({ servers: names('cache-n', 10), virtualNodes }))).values()]
      return Math.max(...counts) - Math.min(...counts)
    }
    expect(unevenness(1000)).toBeLessThan(unevenness(2) / 2)
  })
})

describe('a change of servers', () => {
  it.each(Object.keys(NAMES))('from 3 to 4 moves about a quarter of the keys, all to the new one: %s', (set) => {
    const ring = new HashRing({ servers: names(set, 3) })
    const before = owners(ring)
    const added = names(set, 4)[3] as string
    ring.add(added)
    const moved = owners(ring).filter((owner, index) => owner !== before[index])
    expect(moved.length / KEYS.length).toBeGreaterThan(0.2)
    expect(moved.length / KEYS.length).toBeLessThan(0.3)
    expect(new Set(moved)).toEqual(new Set([added]))
  })

  it('that adds a server moves keys to it only (property)', () => {
    fc.assert(
      fc.property(serverNames, fc.string({ minLength: 13 }), someKeys, (servers, added, keys) => {
        const ring = new HashRing({ servers, virtualNodes: 20 })
        const before = owners(ring, keys)
        ring.add(added)
        for (const [index, owner] of owners(ring, keys).entries()) {
          if (owner !== added) expect(owner).toBe(before[index])
        }
      }),
    )
  })

  it('that removes a server moves exactly its keys (property)', () => {
    fc.assert(
      fc.property(serverNames, fc.string({ minLength: 13 }), someKeys, (servers, removed, keys) => {
        const ring = new HashRing({ servers: [...servers, removed], virtualNodes: 20 })
        const before = owners(ring, keys)
        expect(ring.remove(removed)).toBe(true)
        for (const [index, owner] of owners(ring, keys).entries()) {
          if (before[index] === removed) expect(servers).toContain(owner)
          else expect(owner).toBe(before[index])
        }
      }),
    )
  })

  it('of weight moves keys to the server that grew only', () => {
    const small = new HashRing({ servers: ['a', 'b', { name: 'c', weight: 1 }] })
    const large = new HashRing({ servers: ['a', 'b', { name: 'c', weight: 1.5 }] })
    const before = owners(small)
    const moved = owners(large).filter((owner, index) => owner !== before[index])
    expect(new Set(moved)).toEqual(new Set(['c']))
  })
})

describe('the ring', () => {
  it('does not depend on the order and the history of its servers (property)', () => {
    const shuffled = serverNames.chain((servers) =>
      fc.tuple(fc.constant(servers), fc.shuffledSubarray(servers, { minLength: servers.length })),
    )
    fc.assert(
      fc.property(shuffled, someKeys, ([servers, reordered], keys) => {
        const ring = new HashRing({ servers, virtualNodes: 20 })
        const other = new HashRing({ servers: ['came and went before', ...reordered], virtualNodes: 20 })
        expect(other.serversFor('looked up meanwhile', 1)).toHaveLength(1)
        other.remove('came and went before')
        expect(owners(other, keys)).toEqual(owners(ring, keys))
        expect(keys.map((key) => other.serversFor(key, 3))).toEqual(keys.map((key) => ring.serversFor(key, 3)))
      }),
    )
  })

  it('is the same in every process: these owners may never change', () => {
    const ring = new HashRing({ servers: ['cache-1', 'cache-2', 'cache-3'] })
    const keys = ['', 'user:1', 'user:2', 'user:3', 'tenant/42', 'ключ', '😀']
    expect(owners(ring, keys)).toEqual(['cache-3', 'cache-3', 'cache-3', 'cache-3', 'cache-2', 'cache-2', 'cache-2'])
  })

  it('gives a key that falls on a point to the server of that point', () => {
    // Found by search: each key has the hash of a point, and the next point belongs to another server.
    const ring = new HashRing({ servers: ['a', 'b', 'c'] })
    expect(owners(ring, ['user:2934884', 'user:6708263', 'user:12499599'])).toEqual(['c', 'a', 'b'])
  })

  it('gives a shared point to the name that sorts first, in any order of adding', () => {
    // Found by search: with one virtual node, these two names have all their points in common.
    const [first, second] = ['server-2649', 'server-57615'] as const
    for (const servers of [
      [first, second],
      [second, first],
    ]) {
      const ring = new HashRing({ servers, virtualNodes: 1 })
      const keys = KEYS.slice(0, 100)
      expect(new Set(owners(ring, keys))).toEqual(new Set([first]))
      expect(ring.serversFor('key', 2)).toEqual([first, second])
      ring.remove(first)
      expect(new Set(owners(ring, keys))).toEqual(new Set([second]))
    }
  })
})

describe('serversFor', () => {
  it('begins with the server of the key and names each server once (property)', () => {
    fc.assert(
      fc.property(serverNames, fc.string(), fc.nat({ max: 12 }), (servers, key, count) => {
        const ring = new HashRing({ servers, virtualNodes: 5 })
        const found = ring.serversFor(key, count)
        expect(found).toHaveLength(Math.min(count, servers.length))
        expect(new Set(found).size).toBe(found.length)
        for (const server of found) expect(servers).toContain(server)
        if (count > 0) expect(found[0]).toBe(ring.serverFor(key))
        expect(ring.serversFor(key, 12).slice(0, count)).toEqual(found)
      }),
    )
  })

  it('names next the server that gets the key when the first one goes (property)', () => {
    fc.assert(
      fc.property(serverNames, fc.string(), (servers, key) => {
        const ring = new HashRing({ servers, virtualNodes: 5 })
        const order = ring.serversFor(key, servers.length)
        for (const server of order) {
          expect(ring.serverFor(key)).toBe(server)
          ring.remove(server)
        }
        expect(ring.size).toBe(0)
      }),
    )
  })

  it('is empty on an empty ring and for a count of 0', () => {
    expect(new HashRing().serversFor('key', 3)).toEqual([])
    expect(new HashRing({ servers: ['a'] }).serversFor('key', 0)).toEqual([])
  })
})

describe('servers', () => {
  it('are listed sorted, and removing an unknown one changes nothing', () => {
    const ring = new HashRing({ servers: ['b', { name: 'a', weight: 2 }] })
    expect(ring.servers()).toEqual(['a', 'b'])
    expect([ring.size, ring.has('a'), ring.has('c')]).toEqual([2, true, false])
    expect([ring.remove('c'), ring.remove('a'), ring.remove('a')]).toEqual([false, true, false])
    expect(ring.servers()).toEqual(['b'])
    expect(ring.serverFor('anything')).toBe('b')
  })

  it.each([
    ['no server', () => new HashRing().serverFor('key'), 'SLUICE_RUNTIME_RING_EMPTY'],
    ['a name twice', () => new HashRing({ servers: ['a', 'a'] }), 'SLUICE_RUNTIME_RING_DUPLICATE_SERVER'],
    ['an empty name', () => new HashRing({ servers: [''] }), 'SLUICE_RUNTIME_INVALID_OPTION'],
    ['weight 0', () => new HashRing().add({ name: 'a', weight: 0 }), 'SLUICE_RUNTIME_INVALID_OPTION'],
    ['weight NaN', () => new HashRing().add({ name: 'a', weight: Number.NaN }), 'SLUICE_RUNTIME_INVALID_OPTION'],
    ['weight 101', () => new HashRing().add({ name: 'a', weight: 101 }), 'SLUICE_RUNTIME_INVALID_OPTION'],
    ['no virtual nodes', () => new HashRing({ virtualNodes: 0 }), 'SLUICE_RUNTIME_INVALID_OPTION'],
    ['half a virtual node', () => new HashRing({ virtualNodes: 1.5 }), 'SLUICE_RUNTIME_INVALID_OPTION'],
    ['a negative count', () => new HashRing().serversFor('key', -1), 'SLUICE_RUNTIME_INVALID_OPTION'],
  ])('rejects %s', (_name, misuse, code) => {
    expect(misuse).toThrow(expect.objectContaining({ code }))
  })

  it('with the least weight still have a place', () => {
    const ring = new HashRing({ servers: [{ name: 'a', weight: Number.MIN_VALUE }] })
    expect(ring.serverFor('key')).toBe('a')
  })
})
