import type { Limit } from '@sluice/core/store'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { callSequences } from '../../properties/arbitraries.ts'
import type { AlgorithmUnderTest } from './algorithm-under-test.ts'
import { leakyBucketQueueProperties } from './leaky-bucket-queue.suite.ts'
import { admitted, replay } from './replay.ts'

type RateLimit = Extract<Limit, { rate: unknown }>

/** The bounds that an algorithm promises over time, where it does. */
export function boundProperties(subject: AlgorithmUnderTest): void {
  switch (subject.name) {
    case 'token-bucket':
    case 'leaky-bucket-meter':
    case 'gcra':
      rateBound(subject)
      tightness(subject)
      return
    case 'token-bucket-rollover':
      rateBound(subject)
      firstBound(subject)
      return
    case 'leaky-bucket-queue':
      rateBound(subject)
      tightness(subject)
      leakyBucketQueueProperties(subject)
      return
    case 'sliding-window-log':
    case 'sliding-window-segments':
      windowBound(subject)
  }
}

function rateBound(subject: AlgorithmUnderTest): void {
  it('admits at most capacity + rate x time in every interval', () => {
    fc.assert(
      fc.property(callSequences(subject.name), (sequence) => {
        const calls = admitted(replay(sequence, subject.algorithm))
        const limit = sequence.limit as RateLimit
        for (const [first, from] of calls.entries()) {
          let units = 0n
          for (const to of calls.slice(first)) {
            units += BigInt(to.ask.cost)
            const elapsed = BigInt(to.ask.now - from.ask.now)
            const most = mostHeld(limit) * BigInt(limit.rate.micros) + elapsed * BigInt(limit.rate.units)
            expect(units * 1_000_000n * BigInt(limit.rate.micros) <= most).toBe(true)
          }
        }
      }),
      { numRuns: subject.numRuns },
    )
  })
}

/** Micro-units that can be taken at one instant. */
function mostHeld(limit: RateLimit): bigint {
  return BigInt(limit.full) + (limit.algorithm === 'token-bucket-rollover' ? BigInt(limit.rolloverFull) : 0n)
}

function firstBound(subject: AlgorithmUnderTest): void {
  it('admits at most the capacity without rollover + rate x time from the first call on', () => {
    fc.assert(
      fc.property(callSequences(subject.name), (sequence) => {
        const calls = admitted(replay(sequence, subject.algorithm))
        const limit = sequence.limit as RateLimit
        let units = 0n
        for (const { ask } of calls) {
          units += BigInt(ask.cost)
          const elapsed = BigInt(ask.now - calls[0]!.ask.now)
          const most = BigInt(limit.full) * BigInt(limit.rate.micros) + elapsed * BigInt(limit.rate.units)
          expect(units * 1_000_000n * BigInt(limit.rate.micros) <= most).toBe(true)
        }
      }),
      { numRuns: subject.numRuns },
    )
  })
}

/**
 * The calls as an ideal meter without rounding sees them: admitted never too early, and late by a micro-unit each at
 * most.
 */
function tightness(subject: AlgorithmUnderTest): void {
  it('denies only what an exact meter would deny, but for a micro-unit a call', () => {
    fc.assert(
      fc.property(callSequences(subject.name), (sequence) => {
        const limit = sequence.limit as RateLimit
        const [units, micros] = [BigInt(limit.rate.units), BigInt(limit.rate.micros)]
        const full = BigInt(limit.full) * micros
        // The level in micro-units, multiplied by `micros` so that it is whole.
        let [level, at, lost] = [0n, 0n, 0n]
        for (const { ask, verdict } of replay(sequence, subject.algorithm)) {
          const now = BigInt(ask.now)
          const sunk = level - (now - at) * units
          level = sunk > 0n ? sunk : 0n
          at = now
          const after = level + BigInt(ask.cost) * 1_000_000n * micros
          if (verdict.ruling === 'limit') expect(after + (lost + 1n) * micros > full).toBe(true)
          if (verdict.ruling !== 'allowed') continue
          expect(after <= full).toBe(true)
          level = after
          lost += 1n
        }
      }),
      { numRuns: subject.numRuns },
    )
  })
}

function windowBound(subject: AlgorithmUnderTest): void {
  it('never admits more than the limit in any window', () => {
    fc.assert(
      fc.property(callSequences(subject.name), (sequence) => {
        const calls = admitted(replay(sequence, subject.algorithm))
        const { limit, windowMicros } = sequence.limit as Extract<Limit, { windowMicros: number }>
        for (const [first, from] of calls.entries()) {
          const inWindow = calls.slice(first).filter(({ ask }) => ask.now < from.ask.now + windowMicros)
          expect(inWindow.reduce((sum, { ask }) => sum + ask.cost, 0)).toBeLessThanOrEqual(limit)
        }
      }),
      { numRuns: subject.numRuns },
    )
  })
}
