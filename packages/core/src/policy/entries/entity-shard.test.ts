import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Fingerprint } from '../../fingerprint.ts'
import { EntityShard, NO_SLOT } from './entity-shard.ts'

/** Fingerprints that meet as often as can be: few homes, few differences, and those that look like an empty slot. */
const fingerprints = fc
  .record({
    word0: fc.constantFrom(0, 1, 2, 6, 7, 8, 15, -1),
    word1: fc.nat(2),
    word2: fc.constantFrom(0, 1, 0xff, 0x1_00),
  })
  .map((words) => words as unknown as Fingerprint)

const nameOf = ({ word0, word1, word2 }: Fingerprint): string => `${word0} ${word1} ${word2}`

const spread = (index: number): Fingerprint =>
  ({ word0: Math.imul(index, 0x9e_37_79_b1), word1: index, word2: index >> 3 }) as unknown as Fingerprint

/** Counts who holds which number, as what owns the numbers does. */
class Counts {
  readonly counts: Map<number, number> = new Map()

  take(held: number): number {
    this.counts.set(held, (this.counts.get(held) ?? 0) + 1)
    return held
  }

  release(held: number): void {
    const count = (this.counts.get(held) ?? 0) - 1
    if (count === 0) this.counts.delete(held)
    else this.counts.set(held, count)
  }
}

const NEVER = Number.POSITIVE_INFINITY
const NO_EXPIRY = Number.NEGATIVE_INFINITY

interface Entry {
  readonly held: number
  mark: number
  readonly expiresAt: number
}

/** A shard and what should be in it. */
class Trial {
  readonly numbers = new Counts()
  readonly shard = new EntityShard(this.numbers)
  readonly known = new Map<string, Entry>()
  readonly seen = new Map<string, Fingerprint>()
  nowMs = 0

  put(fingerprint: Fingerprint, held: number, { mark, lasts }: { mark: number; lasts: number }): void {
    const entry = { held: this.numbers.take(held), mark, expiresAt: this.nowMs + lasts }
    this.shard.put(fingerprint, entry, this.nowMs)
    this.known.set(nameOf(fingerprint), entry)
    this.seen.set(nameOf(fingerprint), fingerprint)
  }

  remove(fingerprint: Fingerprint): void {
    const slot = this.shard.find(fingerprint)
    if (slot !== NO_SLOT) this.shard.remove(slot)
    this.known.delete(nameOf(fingerprint))
  }

  markAll(mark: number): void {
    this.shard.markAll(mark)
    for (const entry of this.known.values()) entry.mark = mark
  }

  drop(mark: number | undefined): void {
    this.shard.drop({ nowMs: this.nowMs, mark })
    for (const [name, entry] of this.known) {
      if (entry.mark === mark || entry.expiresAt <= this.nowMs) this.known.delete(name)
    }
  }

  /** What has expired may still be there, and says so; everything else is exactly as it should be. */
  check(): void {
    for (const [name, fingerprint] of this.seen) {
      const slot = this.shard.find(fingerprint)
      const entry = this.known.get(name)
      const isInForce = entry !== undefined && entry.expiresAt > this.nowMs
      if (isInForce) expect(this.shard.heldAt(slot)).toBe(entry.held)
      if (slot !== NO_SLOT) expect(this.shard.isExpired(slot, this.nowMs)).toBe(!isInForce)
    }
  }

  checkCounts(): void {
    const expected = new Counts()
    for (const { held } of this.known.values()) expected.take(held)
    expect(this.numbers.counts).toEqual(expected.counts)
    expect(this.shard.size).toBe(this.known.size)
  }
}

const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc
      .record({
        fingerprint: fingerprints,
        held: fc.integer({ min: 1, max: 5 }),
        mark: fc.constantFrom(0, 1),
        lasts: fc.constantFrom(NEVER, NEVER, 1, 3, 20),
      })
      .map(
        ({ fingerprint, held, mark, lasts }) =>
          (trial: Trial) =>
            trial.put(fingerprint, held, { mark, lasts }),
      ),
  },
  { weight: 2, arbitrary: fingerprints.map((fingerprint) => (trial: Trial) => trial.remove(fingerprint)) },
  { weight: 1, arbitrary: fc.nat(1).map((mark) => (trial: Trial) => trial.markAll(mark)) },
  { weight: 1, arbitrary: fc.nat(1).map((mark) => (trial: Trial) => trial.drop(mark)) },
  {
    weight: 1,
    arbitrary: fc.constant((trial: Trial) => {
      trial.nowMs++
    }),
  },
)

describe('a shard', () => {
  it('holds what was put and neither removed nor dropped, and tells what it no longer holds', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 150 }), (steps) => {
        const trial = new Trial()
        for (const take of steps) {
          take(trial)
          trial.check()
        }
        trial.drop(undefined)
        trial.checkCounts()
      }),
      { numRuns: 500 },
    )
  })

  it('keeps everything as it grows, and as it shrinks again', () => {
    const shard = new EntityShard(new Counts())
    const put = (index: number): void => {
      const expiresAt = index % 3 === 0 ? 1000 + index : NEVER
      shard.put(spread(index), { held: index + 1, mark: 0, expiresAt }, NO_EXPIRY)
    }
    const expectAll = (from: number): void => {
      for (let index = 0; index < 5000; index++) {
        const slot = shard.find(spread(index))
        if (index < from) expect(slot).toBe(NO_SLOT)
        else expect(shard.heldAt(slot)).toBe(index + 1)
        if (index >= from) expect(shard.isExpired(slot, 1000 + index)).toBe(index % 3 === 0)
        if (index >= from) expect(shard.isExpired(slot, 999 + index)).toBe(false)
      }
    }
    for (let index = 0; index < 5000; index++) put(index)
    expectAll(0)
    for (let index = 0; index < 4990; index++) shard.remove(shard.find(spread(index)))
    expectAll(4990)
    expect(shard.size).toBe(10)
  })

  it('makes room out of what has expired before it grows', () => {
    const numbers = new Counts()
    const shard = new EntityShard(numbers)
    for (let round = 0; round < 100; round++) {
      for (let index = 0; index < 10; index++) {
        const held = numbers.take(index + 1)
        shard.put(spread(round * 10 + index), { held, mark: 0, expiresAt: round + 1 }, round)
      }
    }
    // Ten are in force at any time: what is held of a thousand fits in a table for them.
    expect(shard.size).toBeLessThan(40)
  })
})
