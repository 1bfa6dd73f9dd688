import type { Counter } from '@sluice/contract'
import type { JSX } from 'preact'
import { nowMs } from '../../clock-and-timers.ts'
import { Badge } from '../../ui/controls/badge.tsx'
import { agoText, countText } from '../../ui/theme/format.ts'
import classes from './callers.module.css'

/** From this share on a counter is near its limit. */
const NEAR_LIMIT = 0.8

/** How a counter stands: used of the limit, and when it is as new. */
export function CounterMeter({ counter }: { counter: Counter }): JSX.Element {
  const { limit, used, remaining, resetAt, blockedUntil } = counter
  if (used === null || remaining === null) return <Badge tone="warning">The store did not answer</Badge>
  const share = limit === 0 ? 1 : Math.min(1, used / limit)
  const state = remaining === 0 ? 'full' : 'room'
  return (
    <div class={classes.counter}>
      <meter
        class={classes.meter}
        data-state={share >= NEAR_LIMIT && state === 'room' ? 'near' : state}
        min={0}
        max={Math.max(1, limit)}
        value={Math.min(used, Math.max(1, limit))}
        aria-label={`${used} of ${limit} used`}
      />
      <span class={classes.counterText}>
        <b>{countText(used)}</b> of {countText(limit)} used, {countText(remaining)} left
        {resetAt === null || used === 0 ? null : `, full again ${agoText(Date.parse(resetAt), nowMs())}`}
      </span>
      {blockedUntil === null ? null : <Badge tone="denied">blocked until {blockedUntil}</Badge>}
    </div>
  )
}
