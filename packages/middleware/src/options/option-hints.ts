import { optionAdvice } from '@sluice/core/internal'

/** Hints for options that other libraries name differently. */
const ADVICE = {
  key: 'Write "key": a function that says who is counted.',
  name: 'Write "name": limits with different names count apart.',
  onLimited: 'Write "onLimited": it answers in place of the usual denial.',
  status: 'Write "status": that of a denial.',
  headers: 'Write "headers": "legacy", "draft-11", "both" or "off".',
  refund: 'Write "refund": the statuses for which the charge is given back, such as [500, 503].',
  failureMode: 'Write "failureMode": "open", "closed" or "local".',
  store: 'Write "store": redisStore(client), with redisStore of "sluice/redis".',
  skip: 'Write "skip": a function that says which requests are not limited.',
  rules: 'Write "rules": an object of rules by their names.',
  cost: 'Write "cost": the units that a request takes.',
  ipv6: 'Write "ipv6": { prefixLength: 64 }.',
  warn: 'Write "warn": a function that is called with mistakes.',
} as const

const OTHER_NAMES: Readonly<Record<string, keyof typeof ADVICE>> = {
  keyGenerator: 'key',
  getTracker: 'key',
  keyPrefix: 'name',
  prefix: 'name',
  identifier: 'name',
  handler: 'onLimited',
  message: 'onLimited',
  errorResponseBuilder: 'onLimited',
  errorMessage: 'onLimited',
  statusCode: 'status',
  standardHeaders: 'headers',
  legacyHeaders: 'headers',
  addHeaders: 'headers',
  setHeaders: 'headers',
  skipFailedRequests: 'refund',
  skipSuccessfulRequests: 'refund',
  requestWasSuccessful: 'refund',
  passOnStoreError: 'failureMode',
  skipOnError: 'failureMode',
  redis: 'store',
  client: 'store',
  storeClient: 'store',
  storage: 'store',
  allowList: 'skip',
  whitelist: 'skip',
  skipIf: 'skip',
  throttlers: 'rules',
  limiters: 'rules',
  weight: 'cost',
  pointsToConsume: 'cost',
  ipv6Subnet: 'ipv6',
  validate: 'warn',
}

/** Hint for an unknown option. Undefined if nothing similar exists. */
export function optionHint(option: string, known: readonly string[]): string | undefined {
  const name = Object.hasOwn(OTHER_NAMES, option) ? OTHER_NAMES[option] : undefined
  return name === undefined ? optionAdvice(option, known) : ADVICE[name]
}
