/** How something stands. `skipped`: there was nothing to look at. */
export type FindingStatus = 'ok' | 'warning' | 'failed' | 'skipped'

/** What was found about one thing. */
export interface Finding {
  /** What was looked at, such as `redis clock`. */
  readonly check: string
  readonly status: FindingStatus
  /** What was found. Without secrets. */
  readonly found: string
  /** What to do; null when there is nothing to do. */
  readonly advice: string | null
}

/** All is well. */
export function ok(check: string, found: string): Finding {
  return { check, status: 'ok', found, advice: null }
}

/** It works, and may not for long. */
export function warning(check: string, found: string, advice: string): Finding {
  return { check, status: 'warning', found, advice }
}

/** It does not work. */
export function failed(check: string, found: string, advice: string): Finding {
  return { check, status: 'failed', found, advice }
}

/** There was nothing to look at. */
export function skipped(check: string, found: string): Finding {
  return { check, status: 'skipped', found, advice: null }
}
