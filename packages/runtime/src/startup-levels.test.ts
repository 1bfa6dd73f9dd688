import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Dependent, startupLevels } from './startup-graph.ts'

function levelNames(parts: readonly Dependent[]): string[][] {
  return startupLevels(parts).map((level) => level.map((part) => part.name))
}

describe('startupLevels', () => {
  it.each([
    { name: 'no parts', parts: [], levels: [] },
    { name: 'one part', parts: [{ name: 'a' }], levels: [['a']] },
    { name: 'independent parts', parts: [{ name: 'b' }, { name: 'a' }], levels: [['b', 'a']] },
    {
      name: 'a chain given backwards',
      parts: [{ name: 'c', dependsOn: ['b'] }, { name: 'b', dependsOn: ['a'] }, { name: 'a' }],
      levels: [['a'], ['b'], ['c']],
    },
    {
      name: 'a dependency named twice',
      parts: [{ name: 'b', dependsOn: ['a', 'a'] }, { name: 'a' }],
      levels: [['a'], ['b']],
    },
    {
      name: 'parts that become free in another order than given',
      parts: [{ name: 'x', dependsOn: ['b'] }, { name: 'y', dependsOn: ['a'] }, { name: 'a' }, { name: 'b' }],
      levels: [
        ['a', 'b'],
        ['x', 'y'],
      ],
    },
    {
      name: 'a gateway with services, databases and a queue',
      parts: [
        { name: 'gateway', dependsOn: ['users', 'bookings', 'payments'] },
        { name: 'users', dependsOn: ['users-db'] },
        { name: 'bookings', dependsOn: ['bookings-db', 'queue'] },
        { name: 'payments', dependsOn: ['payments-db', 'queue'] },
        { name: 'queue' },
        { name: 'users-db' },
        { name: 'bookings-db' },
        { name: 'payments-db' },
      ],
      levels: [['queue', 'users-db', 'bookings-db', 'payments-db'], ['users', 'bookings', 'payments'], ['gateway']],
    },
  ])('of $name', ({ parts, levels }) => {
    expect(levelNames(parts)).toEqual(levels)
  })

  it.each([
    { parts: [{ name: 'a', dependsOn: ['a'] }], path: 'a -> a' },
    {
      parts: [
        { name: 'a', dependsOn: ['b'] },
        { name: 'b', dependsOn: ['a'] },
      ],
      path: 'a -> b -> a',
    },
    {
      parts: [
        { name: 'outside', dependsOn: ['fine', 'b'] },
        { name: 'a', dependsOn: ['b'] },
        { name: 'b', dependsOn: ['fine', 'c'] },
        { name: 'c', dependsOn: ['a'] },
        { name: 'fine' },
      ],
      path: 'b -> c -> a -> b',
    },
  ])('names the cycle $path', ({ parts, path }) => {
    expect(() => startupLevels(parts)).toThrow(
      expect.objectContaining({ code: 'SLUICE_RUNTIME_GRAPH_CYCLE', received: path }),
    )
    expect(() => startupLevels(parts)).toThrow(`Received ${path};`)
  })

  it('names a part that is there twice', () => {
    expect(() => startupLevels([{ name: 'a' }, { name: 'b' }, { name: 'a' }])).toThrow(
      expect.objectContaining({ code: 'SLUICE_RUNTIME_GRAPH_DUPLICATE_PART', received: 'part "a" twice' }),
    )
  })

  it('names an unknown dependency, the part that has it, and the known ones', () => {
    expect(() => startupLevels([{ name: 'a', dependsOn: ['redsi'] }, { name: 'redis' }])).toThrow(
      expect.objectContaining({
        code: 'SLUICE_RUNTIME_GRAPH_UNKNOWN_DEPENDENCY',
        received: 'part "a" depending on "redsi"',
        expected: 'one of "a", "redis"',
      }),
    )
  })

  it('rejects a part without a name', () => {
    expect(() => startupLevels([{ name: '' }])).toThrow(
      expect.objectContaining({ code: 'SLUICE_RUNTIME_INVALID_OPTION' }),
    )
  })

  it('puts every part right after the last of its dependencies (property)', () => {
    fc.assert(
      fc.property(anyParts(), (parts) => {
        const acyclic = parts.map(({ index, wishes }) => ({ index, wishes: wishes.filter((wish) => wish < index) }))
        const given = toDependents(acyclic)
        const levelOf = new Map(
          levelNames(given).flatMap((names, level) => names.map((name) => [name, level] as const)),
        )
        expect(levelOf.size).toBe(given.length)
        for (const part of given) {
          const before = part.dependsOn.map((name) => levelOf.get(name) ?? Number.NaN)
          expect(levelOf.get(part.name)).toBe(Math.max(-1, ...before) + 1)
        }
      }),
    )
  })

  it('finds a real cycle exactly when there is one (property)', () => {
    fc.assert(
      fc.property(anyParts(), (parts) => {
        const given = toDependents(parts)
        const path = cycleOf(given)
        expect(path !== undefined).toBe(given.some((part) => reaches(given, part.name, part.name)))
        if (path === undefined) return
        expect(path.at(-1)).toBe(path[0])
        expect(new Set(path).size).toBe(path.length - 1)
        for (const [index, name] of path.slice(0, -1).entries()) {
          expect(given.find((part) => part.name === name)?.dependsOn).toContain(path[index + 1])
        }
      }),
    )
  })
})

interface Wishes {
  readonly index: number
  readonly wishes: readonly number[]
}

function anyParts(): fc.Arbitrary<Wishes[]> {
  return fc.integer({ min: 1, max: 9 }).chain((count) =>
    fc
      .array(fc.array(fc.nat({ max: count - 1 }), { maxLength: 3 }), { minLength: count, maxLength: count })
      .map((all) => all.map((wishes, index) => ({ index, wishes })))
      .chain((parts) => fc.shuffledSubarray(parts, { minLength: count })),
  )
}

function toDependents(parts: readonly Wishes[]): { name: string; dependsOn: string[] }[] {
  return parts.map(({ index, wishes }) => ({ name: `p${index}`, dependsOn: wishes.map((wish) => `p${wish}`) }))
}

function cycleOf(parts: readonly Dependent[]): string[] | undefined {
  try {
    startupLevels(parts)
    return undefined
  } catch (error) {
    return (error as { received: string }).received.split(' -> ')
  }
}

function reaches(parts: readonly Dependent[], from: string, to: string): boolean {
  const seen = new Set<string>()
  const open = [from]
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    for (const next of parts.find((part) => part.name === name)?.dependsOn ?? []) {
      if (next === to) return true
      if (!seen.has(next)) {
        seen.add(next)
        open.push(next)
      }
    }
  }
  return false
}
