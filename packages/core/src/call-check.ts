import { SluiceError } from './errors.ts'
import type { OptionTaker } from './option-check.ts'
import { checkOptionNames, checkSignal } from './option-check.ts'

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

/** Throws unless `options` are such as `check` and `peek` take. Called only where there are any. */
export function checkCheckOptions(options: unknown): void {
  checkOptionNames(options, CHECK)
  checkFlags(options as Readonly<Record<string, unknown>>)
}

/** Throws unless `options` are such as `acquire` takes. */
export function checkAcquireOptions(options: unknown): void {
  checkOptionNames(options, ACQUIRE)
  checkFlags(options as Readonly<Record<string, unknown>>)
  checkSignal((options as { readonly signal?: unknown }).signal)
}

/** Throws unless `options` are such as `reserve` takes. */
export function checkReserveOptions(options: unknown): void {
  checkOptionNames(options, RESERVE)
  checkFlags(options as Readonly<Record<string, unknown>>)
}

/** What the requests of a joint decision are made of. */
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

/** Throws unless `decision` is one: `refund` takes what `check` answered, not a key. */
export function checkRefunded(decision: unknown): void {
  if (typeof decision === 'object' && decision !== null && 'allowed' in decision) return
  const isPromise = typeof decision === 'object' && decision !== null && 'then' in decision
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: 'what is to be refunded cannot be used',
    received: decision,
    expected: 'the decision that charged it',
    action: isPromise ? 'It is a promise: await it first.' : 'Keep what check() answered, and pass that.',
  })
}

function checkFlags({ partial, entitled }: Readonly<Record<string, unknown>>): void {
  if (partial !== undefined && typeof partial !== 'boolean') throw noFlag('partial', partial)
  if (entitled !== undefined && typeof entitled !== 'boolean') throw noFlag('entitled', entitled)
}

function noFlag(option: string, received: unknown): SluiceError {
  return new SluiceError('SLUICE_INVALID_OPTION', {
    problem: `"${option}" cannot be used`,
    received,
    expected: 'true or false',
  })
}
