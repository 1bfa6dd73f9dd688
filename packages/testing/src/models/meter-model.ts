import type { Limit } from '@sluice/core/store'
import type { Moment, ReferenceModel } from './reference-model.ts'

const MICRO = 1_000_000n

/** A bucket of tokens in integers of any size. Tokens arrive in whole micro-units, and what is not whole is dropped. */
export function meterModel(limit: Extract<Limit, { rate: unknown }>): ReferenceModel {
  const full = BigInt(limit.full)
  const units = BigInt(limit.rate.units)
  const micros = BigInt(limit.rate.micros)
  let tokens = full
  let countedAt: bigint | undefined
  const tokensAt = ({ now }: Moment): bigint => {
    const arrived = countedAt === undefined ? full : ((BigInt(now) - countedAt) * units) / micros
    return tokens + arrived > full ? full : tokens + arrived
  }
  return {
    left: (moment) => {
      const whole = tokensAt(moment)
      return whole < 0n ? 0 : Number(whole / MICRO)
    },
    take(moment, cost) {
      tokens = tokensAt(moment) - BigInt(cost) * MICRO
      countedAt = BigInt(moment.now)
    },
  }
}

/**
 * A bucket with room for what rolls over, in integers of any size. Tokens beyond `full` are gone when that many have
 * arrived since the last call that the bucket was filled, and then twice over.
 */
export function rolloverModel(limit: Extract<Limit, { algorithm: 'token-bucket-rollover' }>): ReferenceModel {
  const full = BigInt(limit.full)
  const most = full + BigInt(limit.rolloverFull)
  const units = BigInt(limit.rate.units)
  const micros = BigInt(limit.rate.micros)
  let tokens = full
  let countedAt: bigint | undefined
  const tokensAt = ({ now }: Moment): bigint => {
    if (countedAt === undefined) return full
    const arrived = ((BigInt(now) - countedAt) * units) / micros
    const missing = tokens < full ? full - tokens : 0n
    if (arrived >= missing + 2n * full) return full
    return tokens + arrived > most ? most : tokens + arrived
  }
  return {
    left: (moment) => {
      const whole = tokensAt(moment)
      return whole < 0n ? 0 : Number(whole / MICRO)
    },
    take(moment, cost) {
      tokens = tokensAt(moment) - BigInt(cost) * MICRO
      countedAt = BigInt(moment.now)
    },
  }
}
