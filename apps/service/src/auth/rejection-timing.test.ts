import { createHash } from 'node:crypto'
import { systemMonotonicMs } from '@sluice/core/internal'
import { Logger, LogOutput } from '@sluice/runtime'
import { FakeClock, seededRandom } from '@sluice/testing'
import { expect, it } from 'vitest'
import type { KnownApiKey } from './authenticator.ts'
import { ApiKeyCache, Authenticator } from './authenticator.ts'

// The duration of a rejection must not reveal which keys exist: otherwise ids could be found one by one. A malformed
// key is not compared: its sender knows that it is malformed.

const SAMPLES = 2000

/** Beyond this, two samples are of different distributions: the usual bound of tests for leaks through time. */
const MOST_T = 4.5

/**
 * A difference below this share of the whole comes from where keys lie in memory: it has another sign for each kind of
 * key that exists. Not to compare the secret where there is no key makes a tenth.
 */
const SMALLEST_SHARE = 0.05

/** A difference that is there is found every time; one that is not is not found again. */
const MOST_TRIES = 4

/** A collection of garbage or another process falls into some measurements, and says nothing about the work. */
const KEPT_SHARE = 0.8

const SECRET = 'S'.repeat(43)
const WRONG = 'W'.repeat(43)

/** What is the matter with the key that a token names. Its secret is wrong in any case. */
const KINDS = ['unknown', 'wrong secret', 'revoked', 'expired'] as const
type Kind = (typeof KINDS)[number]

/**
 * `series`: from 0 to 3; which of them are of which kind changes with every round, so that what differs is the kind
 * alone.
 */
function idOf(series: number, index: number): string {
  return `slk_${series}${String(index).padStart(11, '0')}`
}

function keyOf(kind: Kind, id: string): KnownApiKey {
  return {
    id,
    name: 'a key',
    role: 'admin',
    tenant: undefined,
    tier: undefined,
    createdAt: 1,
    expiresAt: kind === 'expired' ? 1 : undefined,
    revokedAt: kind === 'revoked' ? 1 : undefined,
    rotatedFrom: undefined,
    secretHash: createHash('sha256').update(SECRET).digest('hex'),
  }
}

/** Every key is tried once, from an address of its own: no attempt is beyond the limits of failed ones. */
class Door {
  readonly #authenticator: Authenticator
  readonly #round: number
  #tried = 0

  constructor(round: number) {
    this.#round = round
    const keys = new ApiKeyCache()
    keys.beginReload()
    for (let index = 0; index < SAMPLES; index++) {
      for (const kind of KINDS) {
        const key = keyOf(kind, idOf(this.#seriesOf(kind), index))
        if (kind !== 'unknown') keys.apply([{ kind: 'api-key', key: key.id, entry: key }])
      }
    }
    keys.endReload()
    // Nothing is logged, which would take longer than all the rest.
    const stream = { write: () => true, on: () => undefined, off: () => undefined }
    const log = new Logger(new LogOutput({ stream, nowMs: () => 0, level: 'off' }))
    const clock = new FakeClock()
    this.#authenticator = new Authenticator({
      keys,
      clock,
      random: seededRandom(1),
      log,
      secret: new Uint8Array(32),
    })
  }

  #seriesOf(kind: Kind): number {
    return (KINDS.indexOf(kind) + this.#round) % KINDS.length
  }

  /** Milliseconds that a rejection takes. */
  reject(kind: Kind, index: number): number {
    const tried = this.#tried++
    const remoteAddress = `10.${(tried >> 16) & 255}.${(tried >> 8) & 255}.${tried & 255}`
    const headers = { authorization: `Bearer ${idOf(this.#seriesOf(kind), index)}_${WRONG}` }
    const startedMs = systemMonotonicMs()
    const rejected = this.#authenticator.authenticate({ headers, remoteAddress }, 'viewer')
    const tookMs = systemMonotonicMs() - startedMs
    expect(rejected).toMatchObject({ status: 401 })
    return tookMs
  }
}

/**
 * The times of all kinds, measured in turn and in random order, so that noise of the machine affects all of them.
 */
function measured(seed: number): Readonly<Record<Kind, readonly number[]>> {
  const random = seededRandom(seed)
  const times: Record<Kind, number[]> = { unknown: [], 'wrong secret': [], revoked: [], expired: [] }
  for (let round = 0; round < KINDS.length; round++) {
    const door = new Door(round)
    for (let index = 0; index < SAMPLES; index++) {
      const order = KINDS.map((kind) => ({ kind, place: random.nextUint32() }))
      order.sort((one, other) => one.place - other.place)
      for (const { kind } of order) times[kind].push(door.reject(kind, index))
    }
  }
  return times
}

interface Spread {
  readonly count: number
  readonly mean: number
  readonly variance: number
}

/** Without the first part, in which the code is still being compiled, and without the longest. */
function spreadOf(times: readonly number[]): Spread {
  const kept = times
    .slice(times.length / 4)
    .sort((one, other) => one - other)
    .slice(0, times.length * 0.75 * KEPT_SHARE)
  const mean = kept.reduce((sum, time) => sum + time, 0) / kept.length
  const variance = kept.reduce((sum, time) => sum + (time - mean) ** 2, 0) / (kept.length - 1)
  return { count: kept.length, mean, variance }
}

/** How sure one is that two samples have different means, by the test of Welch. */
function welch(one: Spread, other: Spread): number {
  return Math.abs(one.mean - other.mean) / Math.sqrt(one.variance / one.count + other.variance / other.count)
}

/** What can be told from keys that do not exist by the time that their rejection takes. */
function toldApart(seed: number): readonly string[] {
  const times = measured(seed)
  const unknown = spreadOf(times.unknown)
  return KINDS.flatMap((kind) => {
    const spread = spreadOf(times[kind])
    const t = welch(unknown, spread)
    const share = Math.abs(spread.mean / unknown.mean - 1)
    const isTold = t > MOST_T && share > SMALLEST_SHARE
    return isTold ? [`${kind}: ${(share * 100).toFixed(1)} % apart, t = ${t.toFixed(1)}`] : []
  })
}

it('a rejection takes as long for a key that does not exist, a wrong secret, and a key that has ended', () => {
  let told = toldApart(1)
  for (let tried = 1; tried < MOST_TRIES && told.length > 0; tried++) told = toldApart(tried + 1)
  expect(told).toEqual([])
})
