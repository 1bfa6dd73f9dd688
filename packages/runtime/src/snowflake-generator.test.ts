import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SnowflakeGenerator } from './snowflake-generator.ts'
import { decodeSnowflake, SNOWFLAKE_EPOCH_MS } from './snowflake-id.ts'

const START_MS = Date.UTC(2026, 0, 1)
const LAST_MS = SNOWFLAKE_EPOCH_MS + 2 ** 41 - 1

/** A clock that a test sets; with `perRead` it also advances by that number of milliseconds at every read. */
function clockAt(atMs: number, perRead = 0) {
  const clock = {
    atMs,
    reads: 0,
    nowMs: (): number => {
      clock.reads++
      clock.atMs += perRead
      return clock.atMs
    },
  }
  return clock
}

function generatorOn(clock: { nowMs: () => number }, maxBackwardsMs?: number): SnowflakeGenerator {
  return new SnowflakeGenerator({ datacenter: 3, machine: 7, nowMs: clock.nowMs, maxBackwardsMs })
}

describe('SnowflakeGenerator', () => {
  it('numbers the ids of a millisecond from 0 and starts again in the next', () => {
    const clock = clockAt(START_MS)
    const generator = generatorOn(clock)
    const steps = [
      { atMs: START_MS, timestampMs: START_MS, sequence: 0 },
      { atMs: START_MS, timestampMs: START_MS, sequence: 1 },
      { atMs: START_MS + 0.9, timestampMs: START_MS, sequence: 2 },
      { atMs: START_MS + 1, timestampMs: START_MS + 1, sequence: 0 },
      { atMs: START_MS + 5000, timestampMs: START_MS + 5000, sequence: 0 },
      { atMs: START_MS + 5000, timestampMs: START_MS + 5000, sequence: 1 },
    ]
    for (const { atMs, ...expected } of steps) {
      clock.atMs = atMs
      expect(decodeSnowflake(generator.next())).toEqual({ datacenter: 3, machine: 7, ...expected })
    }
  })

  it('gives ids as decimal digits too', () => {
    const id = generatorOn(clockAt(START_MS)).nextString()
    expect(id).toMatch(/^\d{18,19}$/)
    expect(decodeSnowflake(id)).toEqual({ timestampMs: START_MS, datacenter: 3, machine: 7, sequence: 0 })
  })

  it('makes 4096 ids in a millisecond, then waits for the next one', () => {
    const clock = clockAt(START_MS)
    let readsLeft = 0
    const nowMs = (): number => {
      if (readsLeft-- === 0) clock.atMs++
      return clock.nowMs()
    }
    const generator = generatorOn({ nowMs })
    readsLeft = -1
    const full = Array.from({ length: 4096 }, () => decodeSnowflake(generator.next()))
    expect(full.map((parts) => parts.sequence)).toEqual(Array.from({ length: 4096 }, (_, index) => index))
    expect(new Set(full.map((parts) => parts.timestampMs))).toEqual(new Set([START_MS]))
    expect(clock.reads).toBe(4096)
    readsLeft = 99
    expect(decodeSnowflake(generator.next())).toMatchObject({ timestampMs: START_MS + 1, sequence: 0 })
    expect(clock.reads).toBe(4096 + 100)
  })

  it('does not wait for ever on a clock that stands still, and goes on when it moves', () => {
    const clock = clockAt(START_MS)
    const generator = generatorOn(clock)
    generator.take(4096)
    expect(() => generator.next()).toThrow(expect.objectContaining({ code: 'SLUICE_RUNTIME_CLOCK_STALLED' }))
    clock.atMs++
    expect(decodeSnowflake(generator.next())).toMatchObject({ timestampMs: START_MS + 1, sequence: 0 })
  })

  it.each([
    { datacenter: -1, machine: 0 },
    { datacenter: 32, machine: 0 },
    { datacenter: 0, machine: -1 },
    { datacenter: 0, machine: 32 },
    { datacenter: 0.5, machine: 0 },
    { datacenter: 0, machine: Number.NaN },
    { datacenter: 0, machine: 0, maxBackwardsMs: -1 },
    { datacenter: 0, machine: 0, maxBackwardsMs: 1001 },
  ])('rejects %o', (options) => {
    expect(() => new SnowflakeGenerator({ ...options, nowMs: () => START_MS })).toThrow(
      expect.objectContaining({ code: 'SLUICE_RUNTIME_INVALID_OPTION' }),
    )
  })

  it.each([
    { atMs: SNOWFLAKE_EPOCH_MS, code: undefined },
    { atMs: SNOWFLAKE_EPOCH_MS - 1, code: 'SLUICE_RUNTIME_CLOCK_OUT_OF_RANGE' },
    { atMs: 0, code: 'SLUICE_RUNTIME_CLOCK_OUT_OF_RANGE' },
    { atMs: LAST_MS, code: undefined },
    { atMs: LAST_MS + 1, code: 'SLUICE_RUNTIME_CLOCK_OUT_OF_RANGE' },
    { atMs: Number.POSITIVE_INFINITY, code: 'SLUICE_RUNTIME_CLOCK_OUT_OF_RANGE' },
    { atMs: Number.NaN, code: 'SLUICE_RUNTIME_INVALID_PORT' },
  ])('at $atMs ms: $code', ({ atMs, code }) => {
    const generator = generatorOn(clockAt(atMs))
    if (code === undefined) expect(decodeSnowflake(generator.next()).timestampMs).toBe(atMs)
    else expect(() => generator.next()).toThrow(expect.objectContaining({ code }))
  })

  it('does not go on past the last millisecond, also while it waits', () => {
    const clock = clockAt(LAST_MS)
    const generator = generatorOn(clock)
    generator.take(4095)
    expect(generator.next()).toBe(((2n ** 63n - 1n) & ~(1023n << 12n)) | (BigInt(3 * 32 + 7) << 12n))
    clock.atMs++
    expect(() => generator.next()).toThrow(expect.objectContaining({ code: 'SLUICE_RUNTIME_CLOCK_OUT_OF_RANGE' }))
  })
})

describe('a clock that goes back', () => {
  it.each([
    { backMs: 1, maxBackwardsMs: undefined, rejected: false },
    { backMs: 10, maxBackwardsMs: undefined, rejected: false },
    { backMs: 11, maxBackwardsMs: undefined, rejected: true },
    { backMs: 1, maxBackwardsMs: 0, rejected: true },
    { backMs: 500, maxBackwardsMs: 500, rejected: false },
    { backMs: 501, maxBackwardsMs: 500, rejected: true },
    { backMs: 3_600_000, maxBackwardsMs: 1000, rejected: true },
  ])('by $backMs ms with $maxBackwardsMs allowed is rejected: $rejected', ({ backMs, maxBackwardsMs, rejected }) => {
    const clock = clockAt(START_MS)
    const generator = generatorOn(clock, maxBackwardsMs)
    const before = generator.next()
    clock.atMs -= backMs
    if (rejected) {
      expect(() => generator.next()).toThrow(
        expect.objectContaining({
          code: 'SLUICE_RUNTIME_CLOCK_BACKWARDS',
          received: `a clock ${backMs} ms behind the last id`,
          expected: `at most ${maxBackwardsMs ?? 10} ms`,
        }),
      )
      clock.atMs = START_MS
    }
    expect(generator.next()).toBe(before + 1n)
  })

  it('says what to do', () => {
    const clock = clockAt(START_MS)
    const generator = generatorOn(clock)
    generator.next()
    clock.atMs -= 11
    expect(() => generator.next()).toThrow(/slew the clock .* another machine number/)
  })

  it('waits past the last millisecond used, through the whole step back', () => {
    const clock = clockAt(START_MS)
    const generator = new SnowflakeGenerator({ datacenter: 0, machine: 0, nowMs: () => clock.nowMs() })
    generator.take(4096)
    const behind = clockAt(START_MS - 11, 1)
    clock.nowMs = behind.nowMs
    expect(decodeSnowflake(generator.next())).toMatchObject({ timestampMs: START_MS + 1, sequence: 0 })
    expect(behind.reads).toBe(12)
  })

  it('is rejected when it goes back too far during a wait', () => {
    let reads = 0
    const nowMs = (): number => (++reads < 5000 ? START_MS : START_MS - 11)
    const generator = generatorOn({ nowMs })
    expect(() => generator.take(5000)).toThrow(expect.objectContaining({ code: 'SLUICE_RUNTIME_CLOCK_BACKWARDS' }))
    expect(reads).toBe(5000)
  })
})

describe('take', () => {
  it('gives the same ids as `count` calls of next, and leaves the same state (property)', () => {
    const steps = fc.array(fc.record({ moveMs: fc.integer({ min: -3, max: 5 }), count: fc.nat({ max: 1500 }) }))
    fc.assert(
      fc.property(steps, (moves) => {
        const clock = clockAt(START_MS)
        const one = generatorOn(clock, 1000)
        const many = generatorOn(clock, 1000)
        let lastMs = 0
        let room = 0
        for (const { moveMs, count } of moves) {
          clock.atMs += moveMs
          if (clock.atMs > lastMs) {
            lastMs = clock.atMs
            room = 4096
          }
          // The clock of this test does not advance by itself, so a millisecond must not be used up.
          const fitting = Math.min(count, room)
          room -= fitting
          expect([...many.take(fitting)]).toEqual(Array.from({ length: fitting }, () => one.next()))
        }
      }),
      { numRuns: 50 },
    )
  })

  it('goes on through as many milliseconds as it needs', () => {
    const ids = generatorOn(clockAt(START_MS, 1)).take(10_000)
    const times = [...ids].map((id) => decodeSnowflake(id))
    expect(times.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 10_000 }, (_, index) => index % 4096))
    expect(times.map(({ timestampMs }) => timestampMs - START_MS)).toEqual(
      Array.from({ length: 10_000 }, (_, index) => 1 + Math.floor(index / 4096)),
    )
  })

  it('reads the clock once for all ids of a millisecond', () => {
    const clock = clockAt(START_MS, 1)
    const ids = generatorOn(clock).take(3 * 4096 + 1)
    expect(clock.reads).toBe(4)
    expect(decodeSnowflake(ids.at(-1) as bigint)).toMatchObject({ timestampMs: START_MS + 4, sequence: 0 })
  })

  it.each([-1, 0.5, 1_000_001, Number.NaN])('rejects a count of %s', (count) => {
    expect(() => generatorOn(clockAt(START_MS)).take(count)).toThrow(
      expect.objectContaining({ code: 'SLUICE_RUNTIME_INVALID_OPTION' }),
    )
  })
})

describe('10 million ids of 4 generators', () => {
  const GENERATORS = 4
  const BATCH = 10_000
  const BATCHES = 250

  /** Stands still for about 2000 reads, then advances; every 50th step is one back, by up to 10 ms. */
  function restlessClock(seed: number): () => number {
    let atMs = START_MS
    let reads = 0
    let steps = seed
    return () => {
      if (++reads % 2000 === 0) {
        steps++
        atMs += steps % 50 === 0 ? -(1 + (steps % 10)) : 1 + (steps % 3)
      }
      return atMs
    }
  }

  /** Throws unless the ids rise, from `last` on, and are of this machine; gives the last one. */
  function requireRising(ids: Iterable<bigint>, machine: number, last: bigint): bigint {
    let previous = last
    for (const id of ids) {
      if (id <= previous) expect.fail(`${id} came after ${previous}`)
      if (((Number(BigInt.asUintN(32, id)) >>> 12) & 31) !== machine) expect.fail(`${id} is of another machine`)
      previous = id
    }
    return previous
  }

  // Rising ids of one generator differ; those of two generators differ in the bits of the machine.
  it('all differ, and rise within each generator', () => {
    const sample = new Set<bigint>()
    let sampled = 0
    let total = 0
    for (let machine = 0; machine < GENERATORS; machine++) {
      const generator = new SnowflakeGenerator({ datacenter: 31, machine, nowMs: restlessClock(machine) })
      let last = -1n
      for (let batch = 0; batch < BATCHES; batch++) {
        // Every fourth batch by take, the others one by one.
        const ids = batch % 4 === 3 ? generator.take(BATCH) : Array.from({ length: BATCH }, () => generator.next())
        last = requireRising(ids, machine, last)
        total += ids.length
        const shown = batch % 9 === 0 ? [...ids] : []
        for (const id of shown) sample.add(id)
        sampled += shown.length
      }
    }
    expect(total).toBe(10_000_000)
    expect(sampled).toBeGreaterThan(1_000_000)
    expect(sample.size).toBe(sampled)
  })
})
