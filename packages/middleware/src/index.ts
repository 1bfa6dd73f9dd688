export type { RefusalProblem } from './http/denial.ts'
export type { HttpRequest } from './http/http-request.ts'
export type { Eventually } from './http/maybe-promise.ts'
export type { Admission, HttpOutcome, Refusal } from './http/outcome.ts'
export type { AddressTier, Ipv6Options } from './identity/address-tiers.ts'
export { type ApiKeyOptions, byApiKey } from './identity/by-api-key.ts'
export type { TrustedProxies, TrustedProxyOptions } from './identity/client-address.ts'
export { byIp, byUser, type Identity, type KeyFunction, type KeySource } from './identity/identity.ts'
export { createHttpLimiter, type HttpAdapter, type HttpLimiter } from './limiter/http-limiter.ts'
export { MISUSES, type MisuseCode, type MisuseListener, type MisuseWarning } from './misuse/misuse-warning.ts'
export type {
  CheckCall,
  CostSource,
  RateLimitOptions,
  RuleFields,
  RuleOptions,
  RuleUse,
} from './options/rate-limit-options.ts'
