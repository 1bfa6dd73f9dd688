export type { AddressTier, Ipv6Options } from './address-tiers.ts'
export { type ApiKeyOptions, byApiKey } from './api-key.ts'
export type { TrustedProxies, TrustedProxyOptions } from './client-address.ts'
export type { Eventually } from './eventually.ts'
export { createHttpLimiter, type HttpAdapter, type HttpLimiter } from './http-limiter.ts'
export type { Admission, HttpOutcome, Refusal } from './http-outcome.ts'
export type { HttpRequest } from './http-request.ts'
export { byIp, byUser, type Identity, type KeyFunction, type KeySource } from './identity.ts'
export { MISUSES, type MisuseCode, type MisuseListener, type MisuseWarning } from './misuse-warning.ts'
export type {
  CheckCall,
  CostSource,
  RateLimitOptions,
  RuleFields,
  RuleOptions,
  RuleUse,
} from './rate-limit-options.ts'
export type { RefusalProblem } from './refusal.ts'
