/** Names of metrics that the live stream and history read. */
export const METRIC = {
  checks: 'ratelimit_checks_total',
  regions: 'ratelimit_region_checks_total',
  shadowVersions: 'ratelimit_shadow_version_checks_total',
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

/** Label value for unknown values, and for those beyond the maximum. */
export const OTHER = 'other'

/** Label value for a missing one, such as the dimension of an unlimited check. */
export const NONE = 'none'

/** Bucket bounds of durations in milliseconds: from decisions in memory to store timeouts. */
export const DURATION_BOUNDS_MS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 1000,
]

/** Values of the label `result`. */
export const RESULTS = ['allowed', 'denied'] as const
