import { HOSTILE_KEYS, seededRandom } from '@sluice/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Override, OverrideTerms } from './live-entry.ts'
import { OverrideScope, OverrideTable } from './override-table.ts'

const createTable = (): OverrideTable => new OverrideTable(seededRandom(1))

function override(entity: string, terms: OverrideTerms, more: Partial<Override> = {}): Override {
  return { dimension: 'user', resource: '/orders', entity, terms, ...more }
}

const scope = new OverrideScope('user', '/orders')

describe('an override table', () => {
  it('finds the override of an entity, and none for another entity, dimension or resource', () => {
    const table = createTable()
    table.putOverride(override('u1', { limit: 5 }), 0)
    expect(table.termsOf(scope, 'u1', 0)).toEqual({ limit: 5 })
    expect(table.termsOf(scope, 'u2', 0)).toBeUndefined()
    expect(table.termsOf(new OverrideScope('apiKey', '/orders'), 'u1', 0)).toBeUndefined()
    expect(table.termsOf(new OverrideScope('user', '/items'), 'u1', 0)).toBeUndefined()
    expect(table.size).toBe(1)
  })

  it('prefers an override for the resource to one for every resource', () => {
    const table = createTable()
    table.putOverride(override('u1', { limit: 1 }, { resource: '*' }), 0)
    expect(table.termsOf(scope, 'u1', 0)).toEqual({ limit: 1 })
    table.putOverride(override('u1', { limit: 2 }), 0)
    expect(table.termsOf(scope, 'u1', 0)).toEqual({ limit: 2 })
    expect(table.termsOf(new OverrideScope('user', '/items'), 'u1', 0)).toEqual({ limit: 1 })
    expect(table.termsOf(new OverrideScope('user', '*'), 'u1', 0)).toEqual({ limit: 1 })
    table.removeOverride('user', 'u1', '/orders')
    expect(table.termsOf(scope, 'u1', 0)).toEqual({ limit: 1 })
  })

  it('finds the override of an API key by its digest, after one that names the key', () => {
    const digests: string[] = []
    const table = new OverrideTable(seededRandom(1), (apiKey) => {
      digests.push(apiKey)
      return `d-${apiKey}`
    })
    const keys = new OverrideScope('apiKey', '/orders')
    const named = (entity: string, limit: number, resource = '/orders'): Override =>
      override(entity, { limit }, { dimension: 'apiKey', resource })
    table.putOverride(named('k1', 1), 0)
    expect([table.termsOf(keys, 'k1', 0)?.limit, table.termsOf(keys, 'k2', 0)]).toEqual([1, undefined])
    expect(digests).toEqual([])
    table.putOverride(named('digest:d-k1', 2), 0)
    table.putOverride(named('digest:d-k2', 3), 0)
    table.putOverride(named('digest:d-k3', 4, '*'), 0)
    const limits = ['k1', 'k2', 'k3', 'digest:d-k2', 'd-k2'].map((key) => table.termsOf(keys, key, 0)?.limit)
    expect(limits).toEqual([1, 3, 4, undefined, undefined])
    expect(table.termsOf(scope, 'k2', 0)).toBeUndefined()
    expect(table.removeOverride('apiKey', 'digest:d-k2', '/orders')).toBe(true)
    expect(table.termsOf(keys, 'k2', 0)).toBeUndefined()
  })

  it('takes an override for digest:... as one for a key of that name, where there are no digests', () => {
    const table = createTable()
    table.putOverride(override('digest:d-k1', { limit: 1 }, { dimension: 'apiKey' }), 0)
    expect(table.termsOf(new OverrideScope('apiKey', '/orders'), 'digest:d-k1', 0)).toEqual({ limit: 1 })
  })

  it('takes resources in any spelling that rules may have', () => {
    const table = createTable()
    table.putOverride(override('u1', { limit: 1 }, { resource: '/API//Orders/:id' }), 0)
    expect(table.termsOf(new OverrideScope('user', '/api/orders/:key'), 'u1', 0)).toEqual({ limit: 1 })
    expect(table.removeOverride('user', 'u1', '/api/orders/:other')).toBe(true)
    expect(table.termsOf(new OverrideScope('user', '/api/orders/:key'), 'u1', 0)).toBeUndefined()
  })

  it('remembers spellings of many resources without mixing them up', () => {
    const table = createTable()
    for (let index = 0; index < 3000; index++) {
      table.putOverride(override('u1', { limit: index }, { resource: `/R${index}` }), 0)
    }
    for (let index = 0; index < 3000; index++) {
      expect(table.termsOf(new OverrideScope('user', `/r${index}`), 'u1', 0)).toEqual({ limit: index })
    }
  })

  it('has no effect from its expiry on, and is dropped when it is met then', () => {
    const table = createTable()
    table.putOverride(override('u1', { limit: 1 }, { resource: '*' }), 0)
    table.putOverride(override('u1', { limit: 2 }, { expiresAt: 1000 }), 0)
    expect(table.termsOf(scope, 'u1', 999)).toEqual({ limit: 2 })
    expect(table.size).toBe(2)
    expect(table.termsOf(scope, 'u1', 1000)).toEqual({ limit: 1 })
    expect(table.size).toBe(1)
  })

  it('takes an override that has expired already for a removal', () => {
    const table = createTable()
    table.putOverride(override('u1', { limit: 1 }), 0)
    table.putOverride(override('u1', { limit: 2 }, { expiresAt: 1000 }), 1000)
    expect(table.termsOf(scope, 'u1', 0)).toBeUndefined()
    expect(table.size).toBe(0)
  })

  it('gives the same frozen object for equal terms of different entities', () => {
    const table = createTable()
    const given = { windows: [{ limit: 1, window: '1s' as const }] }
    table.putOverride(override('u1', given), 0)
    table.putOverride(override('u2', { windows: [{ limit: 1, window: '1s' }] }, { resource: '*' }), 0)
    const found = table.termsOf(scope, 'u1', 0)
    expect(table.termsOf(scope, 'u2', 0)).toBe(found)
    expect(found).toEqual(given)
    expect([found, found?.windows, found?.windows?.[0]].every(Object.isFrozen)).toBe(true)
    expect(table.distinctValues).toBe(1)
    given.windows[0]!.limit = 99
    expect(found?.windows?.[0]?.limit).toBe(1)
  })

  it.each<[OverrideTerms, OverrideTerms]>([
    [{ limit: 1 }, { limit: 2 }],
    [{ limit: 0 }, { limit: 'off' }],
    [{ limit: 2 }, { multiplier: 2 }],
    [{ multiplier: 2 }, { multiplier: 3 }],
    [{ limit: 2 }, { limit: 2, burst: 3 }],
    [
      { limit: 2, window: 1 },
      { limit: 2, burst: 1 },
    ],
    [
      { limit: 2, window: '1s' },
      { limit: 2, window: '1m' },
    ],
    [{ windows: [] }, {}],
    [{ windows: [{ limit: 1, window: 2 }] }, { windows: [{ limit: 2, window: 1 }] }],
    [
      { windows: [{ limit: 1, window: 2, burst: 3 }] },
      {
        windows: [
          { limit: 1, window: 2 },
          { limit: 3, window: 2 },
        ],
      },
    ],
  ])('keeps different terms apart: %o and %o', (one, other) => {
    const table = createTable()
    table.putOverride(override('u1', one), 0)
    table.putOverride(override('u2', other), 0)
    expect(table.termsOf(scope, 'u1', 0)).toEqual(one)
    expect(table.termsOf(scope, 'u2', 0)).toEqual(other)
  })

  it('forgets terms that no entity has any more', () => {
    const table = createTable()
    for (let index = 0; index < 1000; index++) table.putOverride(override('u1', { limit: index }), 0)
    expect(table.distinctValues).toBe(1)
    expect(table.removeOverride('user', 'u1', '/orders')).toBe(true)
    expect(table.distinctValues).toBe(0)
    expect(table.removeOverride('user', 'u1', '/orders')).toBe(false)
  })

  it('tells hostile entities apart', () => {
    const table = createTable()
    for (const [index, entity] of HOSTILE_KEYS.entries()) table.putOverride(override(entity, { limit: index }), 0)
    for (const [index, entity] of HOSTILE_KEYS.entries()) {
      expect(table.termsOf(scope, entity, 0)).toEqual({ limit: index })
    }
  })

  it('can be searched by one scope in turn with another table', () => {
    const tables = [createTable(), createTable()] as const
    tables[0].putOverride(override('u1', { limit: 1 }), 0)
    tables[1].putOverride(override('u1', { limit: 2 }), 0)
    for (let round = 0; round < 2; round++) {
      expect(tables[0].termsOf(scope, 'u1', 0)).toEqual({ limit: 1 })
      expect(tables[1].termsOf(scope, 'u1', 0)).toEqual({ limit: 2 })
    }
  })

  it('keeps 50,000 overrides as it grows, and shrinks when they go', () => {
    const table = createTable()
    for (let index = 0; index < 50_000; index++) table.putOverride(override(`u${index}`, { limit: index % 10 }), 0)
    expect(table.size).toBe(50_000)
    for (let index = 0; index < 50_000; index++) expect(table.termsOf(scope, `u${index}`, 0)?.limit).toBe(index % 10)
    expect(table.termsOf(scope, 'u50000', 0)).toBeUndefined()
    for (let index = 0; index < 50_000; index++) table.removeOverride('user', `u${index}`, '/orders')
    expect(table.size).toBe(0)
    expect(table.distinctValues).toBe(0)
    expect(table.termsOf(scope, 'u1', 0)).toBeUndefined()
    table.putOverride(override('u1', { limit: 7 }), 0)
    expect(table.termsOf(scope, 'u1', 0)).toEqual({ limit: 7 })
  })

  it('does not grow for overrides that come and expire', () => {
    const table = createTable()
    for (let index = 0; index < 200_000; index++) {
      table.putOverride(override(`u${index}`, { limit: 1 }, { expiresAt: index + 100 }), index)
    }
    expect(table.size).toBeLessThan(5000)
  })
})

describe('a reload', () => {
  it('drops what was not put again, and keeps it in force until then', () => {
    const table = createTable()
    for (let index = 0; index < 1000; index++) table.putOverride(override(`u${index}`, { limit: 1 }), 0)
    table.beginReload()
    for (let index = 0; index < 1000; index += 2) table.putOverride(override(`u${index}`, { limit: 2 }), 0)
    expect(table.termsOf(scope, 'u1', 0)).toEqual({ limit: 1 })
    expect(table.size).toBe(1000)
    table.endReload(0)
    expect(table.size).toBe(500)
    for (let index = 0; index < 1000; index++) {
      expect(table.termsOf(scope, `u${index}`, 0)?.limit).toBe(index % 2 === 0 ? 2 : undefined)
    }
  })

  it('that broke off and is restarted counts only what is put from then on', () => {
    const table = createTable()
    for (const entity of ['u1', 'u2', 'u3']) table.putOverride(override(entity, { limit: 1 }), 0)
    table.beginReload()
    table.putOverride(override('u1', { limit: 1 }), 0)
    table.putOverride(override('u2', { limit: 1 }), 0)
    table.beginReload()
    expect(table.size).toBe(3)
    table.putOverride(override('u2', { limit: 1 }), 0)
    table.endReload(0)
    expect(['u1', 'u2', 'u3'].map((entity) => table.termsOf(scope, entity, 0)?.limit)).toEqual([
      undefined,
      1,
      undefined,
    ])
  })

  it('that was not begun drops nothing when it is ended', () => {
    const table = createTable()
    table.putOverride(override('u1', { limit: 1 }), 0)
    table.endReload(0)
    expect(table.size).toBe(1)
  })
})

/** A table and a map that should say the same. */
class Trial {
  readonly table = createTable()
  readonly known = new Map<string, Override & { isNew: boolean }>()
  nowMs = 0
  isReloading = false

  put(given: Override): void {
    this.table.putOverride(given, this.nowMs)
    this.known.set(keyOf(given), { ...given, isNew: true })
  }

  remove(given: Override): void {
    this.table.removeOverride(given.dimension, given.entity, given.resource)
    this.known.delete(keyOf(given))
  }

  beginReload(): void {
    this.table.beginReload()
    this.isReloading = true
    for (const entry of this.known.values()) entry.isNew = false
  }

  endReload(): void {
    this.table.endReload(this.nowMs)
    if (!this.isReloading) return
    this.isReloading = false
    for (const [key, { isNew }] of this.known) if (!isNew) this.known.delete(key)
  }

  termsOf(dimension: string, resource: string, entity: string): OverrideTerms | undefined {
    const entry = this.known.get(keyOf({ dimension, resource, entity }))
    return (entry?.expiresAt ?? Number.POSITIVE_INFINITY) > this.nowMs ? entry?.terms : undefined
  }

  check(): void {
    for (const each of SCOPES) {
      for (const entity of ENTITIES) {
        const { dimension, resource } = each
        const expected = this.termsOf(dimension, resource, entity) ?? this.termsOf(dimension, '*', entity)
        expect(this.table.termsOf(each, entity, this.nowMs)).toEqual(expected)
      }
    }
  }
}

const DIMENSIONS = ['user', 'apiKey']
const RESOURCES = ['/orders', '/items/:any', '*']
const ENTITIES = Array.from({ length: 8 }, (_, index) => `e${index}`)
const SCOPES = DIMENSIONS.flatMap((dimension) => RESOURCES.map((resource) => new OverrideScope(dimension, resource)))

const keyOf = ({ dimension, resource, entity }: Omit<Override, 'terms'>): string => `${dimension} ${resource} ${entity}`

const overrides = fc
  .record({
    dimension: fc.constantFrom(...DIMENSIONS),
    resource: fc.constantFrom(...RESOURCES),
    entity: fc.constantFrom(...ENTITIES),
    limit: fc.nat(3),
    expiresAt: fc.option(fc.nat(12), { nil: undefined }),
  })
  .map(({ limit, expiresAt, ...who }): Override => {
    return { ...who, terms: { limit }, ...(expiresAt === undefined ? {} : { expiresAt }) }
  })

const step: fc.Arbitrary<(trial: Trial) => void> = fc.oneof(
  { weight: 8, arbitrary: overrides.map((given) => (trial: Trial) => trial.put(given)) },
  { weight: 3, arbitrary: overrides.map((given) => (trial: Trial) => trial.remove(given)) },
  {
    weight: 2,
    arbitrary: fc.constant((trial: Trial) => {
      trial.nowMs++
    }),
  },
  { weight: 1, arbitrary: fc.constant((trial: Trial) => trial.beginReload()) },
  { weight: 1, arbitrary: fc.constant((trial: Trial) => trial.endReload()) },
)

it('an override table answers as a map would, whatever is put, removed, reloaded and expires', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const trial = new Trial()
      for (const take of steps) {
        take(trial)
        trial.check()
      }
      const inForce = [...trial.known.values()].filter(
        ({ expiresAt }) => (expiresAt ?? Number.POSITIVE_INFINITY) > trial.nowMs,
      )
      expect(trial.table.size).toBe(inForce.length)
      const terms = new Set(inForce.map(({ terms: { limit } }) => limit))
      expect(trial.table.distinctValues).toBe(terms.size)
    }),
    { numRuns: 500 },
  )
})
