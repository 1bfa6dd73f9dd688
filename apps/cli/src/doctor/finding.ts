/** Result of a check. `skipped`: there was nothing to check. */
export type FindingStatus = 'ok' | 'warning' | 'failed' | 'skipped'

/** What a check found. */
export interface Finding {
  /** What was checked, such as `redis clock`. */
  readonly check: string
  readonly status: FindingStatus
  /** Without secrets. */
  readonly found: string
  /** What to do; null if nothing. */
  readonly advice: string | null
}

export function ok(check: string, found: string): Finding {
  return { check, status: 'ok', found, advice: null }
}

/** It works, but may stop working. */
export function warning(check: string, found: string, advice: string): Finding {
  return { check, status: 'warning', found, advice }
}

/** It does not work. */
export function failed(check: string, found: string, advice: string): Finding {
  return { check, status: 'failed', found, advice }
}

export function skipped(check: string, found: string): Finding {
  return { check, status: 'skipped', found, advice: null }
}
