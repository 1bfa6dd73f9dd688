import { adjustmentProblemOf } from '../compile-rule.ts'
import { SluiceError } from '../errors.ts'
import type { OptionTaker } from '../options/known-options.ts'
import { checkOptionNames, checkSignal } from '../options/known-options.ts'
import type { Limit } from '../rule/limit.ts'

const OTHER_NAMES = {
  points: 'cost',
  tokens: 'cost',
  weight: 'cost',
  units: 'cost',
  maxWaitMs: 'maxWait',
  timeout: 'maxWait',
  timeoutMs: 'maxWait',
  ttl: 'expiresAfter',
  leaseMs: 'expiresAfter',
} as const

const CHECK: OptionTaker = {
  name: 'a check',
  options: ['cost', 'partial', 'entitled'],
  example: '{ cost: 2 }',
  otherNames: OTHER_NAMES,
}
const ACQUIRE: OptionTaker = {
  name: 'acquire',
  options: ['cost', 'entitled', 'signal', 'maxWait'],
  example: '{ maxWait: "2s" }',
  otherNames: OTHER_NAMES,
}
const RESERVE: OptionTaker = {
  name: 'reserve',
  options: ['cost', 'entitled', 'expiresAfter'],
  example: '{ cost: 2 }',
  otherNames: OTHER_NAMES,
}

const BLOCK: OptionTaker = { name: 'block', options: ['reset'], example: '{ reset: true }' }

/** Throws unless `options` are valid for `block`. */
export function checkBlockOptions(options: unknown): void {
  checkOptionNames(options, BLOCK)
  const { reset } = options as { readonly reset?: unknown }
  if (reset !== undefined && typeof reset !== 'boolean') throw noFlag('"reset" of block', reset)
}

/** Throws unless the usage of a key under these limits can be adjusted by `units`. */
export function checkAdjustment(units: unknown, limits: readonly Limit[]): void {
  if (!Number.isSafeInteger(units)) {
    throw new SluiceError('SLUICE_INVALID_COST', {
      problem: 'the units to adjust by cannot be used',
      received: units,
      expected: 'a whole number: above 0 takes units, below 0 gives them back',
    })
  }
  for (const limit of limits) {
    const found = adjustmentProblemOf(limit, units as number)
    if (found !== undefined) throw new SluiceError('SLUICE_UNSUPPORTED', found)
  }
}

/** Throws unless `options` are valid for `check` and `peek`. Called only if there are any. */
export function checkCheckOptions(options: unknown): void {
  checkOptionNames(options, CHECK)
  checkFlags(options as Readonly<Record<string, unknown>>)
}

/** Throws unless `options` are valid for `acquire`. */
export function checkAcquireOptions(options: unknown): void {
  checkOptionNames(options, ACQUIRE)
  checkFlags(options as Readonly<Record<string, unknown>>)
  checkSignal((options as { readonly signal?: unknown }).signal)
}

/** Throws unless `options` are valid for `reserve`. */
export function checkReserveOptions(options: unknown): void {
  checkOptionNames(options, RESERVE)
  checkFlags(options as Readonly<Record<string, unknown>>)
}

/** Fields of the requests of a joint decision. */
export interface RequestForm {
  readonly call: string
  readonly fields: readonly string[]
  readonly example: string
}

/** Throws unless `requests` is a list of objects that have only the fields of `form`. */
export function checkRequests(requests: unknown, { call, fields, example }: RequestForm): void {
  if (!Array.isArray(requests)) {
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: `the requests of ${call} cannot be used`,
      received: requests,
      expected: `a list such as [${example}]`,
    })
  }
  const taker: OptionTaker = { name: `a request of ${call}`, options: fields, example, otherNames: OTHER_NAMES }
  for (const request of requests) checkOptionNames(request, taker)
}

/** Throws unless `decision` is one: `refund` takes the result of `check`, not a key. */
export function checkRefunded(decision: unknown): void {
  if (typeof decision === 'object' && decision !== null && 'allowed' in decision) return
  const isPromise = typeof decision === 'object' && decision !== null && 'then' in decision
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: 'the decision to refund is invalid',
    received: decision,
    expected: 'the decision that charged it',
    action: isPromise ? 'It is a promise: await it first.' : 'Keep what check() answered, and pass that.',
  })
}

/**
 * Throws unless a decision without a receipt charged nothing. A copy (spread, JSON, structured clone) has no receipt:
 * its charge cannot be returned, and an error is better than a settlement of 0 units.
 */
export function checkUncharged(decision: { readonly cost: number; readonly limit: number }): void {
  if (!(decision.cost > 0) || !Number.isFinite(decision.limit)) return
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: 'the decision cannot be refunded: it is a copy, or another process made it',
    received: decision,
    expected: 'the object that check() returned',
    action: 'Keep that object and pass it to refund().',
  })
}

function checkFlags({ partial, entitled }: Readonly<Record<string, unknown>>): void {
  if (partial !== undefined && typeof partial !== 'boolean') throw noFlag('"partial"', partial)
  if (entitled !== undefined && typeof entitled !== 'boolean') throw noFlag('"entitled"', entitled)
}

function noFlag(option: string, received: unknown): SluiceError {
  return new SluiceError('SLUICE_INVALID_OPTION', {
    problem: `${option} cannot be used`,
    received,
    expected: 'true or false',
  })
}
