import type { AlertRule } from './alert-rule.ts'

/**
 * How the condition of one rule stands: plain data. Instants are in milliseconds since 1970.
 *
 *     ok, resolved --holds--> pending --held for forMs--> firing --gone for resolveAfterMs--> resolved
 *                             pending --gone--> ok        firing --back before that--> firing
 *
 * With a `forMs` of 0 there is no pending. `resolved` is `ok` after it fired.
 */
export interface Watch {
  readonly state: 'ok' | 'pending' | 'firing' | 'resolved'
  /** Since when it is in this state. */
  readonly since: number
  /** While firing: since when the condition is gone; undefined while it holds. */
  readonly goneSince?: number
}

/** What was seen at one instant. */
export interface Sight {
  /** Whether the condition holds. */
  readonly holds: boolean
  readonly nowMs: number
}

/**
 * The watch after a look at the condition. A clock that goes back begins the times that are being waited for anew, so that
 * none of them is longer than it should be by more than once.
 */
export function nextWatch(watch: Watch, sight: Sight, rule: Pick<AlertRule, 'forMs' | 'resolveAfterMs'>): Watch {
  const { holds, nowMs } = sight
  const since = Math.min(watch.since, nowMs)
  switch (watch.state) {
    case 'ok':
    case 'resolved':
      if (!holds) return since === watch.since ? watch : { ...watch, since }
      return { state: rule.forMs === 0 ? 'firing' : 'pending', since: nowMs }
    case 'pending':
      if (!holds) return { state: 'ok', since: nowMs }
      return nowMs - since >= rule.forMs ? { state: 'firing', since: nowMs } : { state: 'pending', since }
    case 'firing': {
      if (holds) return { state: 'firing', since }
      const goneSince = Math.min(watch.goneSince ?? nowMs, nowMs)
      if (nowMs - goneSince >= rule.resolveAfterMs) return { state: 'resolved', since: nowMs }
      return { state: 'firing', since, goneSince }
    }
  }
}
