/** Names of metrics that are read again here, for the live stream and for history. */
export const METRIC = {
  checks: 'ratelimit_checks_total',
  regions: 'ratelimit_region_checks_total',
  failureModes: 'ratelimit_failure_mode_checks_total',
  redisErrors: 'ratelimit_redis_errors_total',
  checkDuration: 'ratelimit_check_duration_ms',
  storeDuration: 'ratelimit_store_duration_ms',
  storeInfo: 'ratelimit_store_info',
  breaker: 'ratelimit_breaker_state',
  configVersion: 'ratelimit_config_version',
  configLag: 'ratelimit_config_lag_seconds',
  inFlight: 'sluice_http_requests_in_flight',
  firingAlerts: 'sluice_alerts_firing',
} as const

/** Stands for all values of a label that are not known, or too many to be kept apart. */
export const OTHER = 'other'

/** Stands for a label that a check does not have, such as the dimension of one that nothing limits. */
export const NONE = 'none'

/** Upper ends of buckets for durations, in milliseconds: from decisions in memory to stores that do not answer. */
export const DURATION_BOUNDS_MS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 1000,
]
