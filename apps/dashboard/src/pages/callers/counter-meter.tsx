import type { Counter } from '@sluice/contract'
import type { JSX } from 'preact'
import { nowMs } from '../../clock-and-timers.ts'
import { Badge } from '../../ui/controls/badge.tsx'
import { Meter } from '../../ui/controls/meter.tsx'
import { agoText, countText } from '../../ui/theme/format.ts'
import classes from './callers.module.css'

/** From this share on a counter is near its limit. */
const NEAR_LIMIT = 0.8

/** How a counter stands: used of what it holds at most, and when it is as new. */
export function CounterMeter({ counter }: { counter: Counter }): JSX.Element {
  const { limit, used, remaining, resetAt, blockedUntil } = counter
  if (used === null || remaining === null) return <Badge tone="warning">The store did not answer</Badge>
  const most = mostOf({ limit, used, remaining })
  const share = usedShare(counter)
  const state = remaining === 0 ? 'full' : 'room'
  return (
    <div class={classes.counter}>
      <Meter
        state={share >= NEAR_LIMIT && state === 'room' ? 'near' : state}
        most={Math.max(1, most)}
        value={used}
        label={`${used} of ${most} used`}
      />
      <span class={classes.counterText}>
        <b>{countText(used)}</b> of {countText(most)} used, {countText(remaining)} left
        {resetAt === null || used === 0 ? null : `, full again ${agoText(Date.parse(resetAt), nowMs())}`}
      </span>
      {blockedUntil === null ? null : <Badge tone="denied">blocked until {blockedUntil}</Badge>}
    </div>
  )
}

/** The share of a counter that is used, from 0 to 1; 0 when it is not known. */
export function usedShare({ limit, used, remaining }: Counter): number {
  if (used === null || remaining === null) return 0
  const most = mostOf({ limit, used, remaining })
  return most === 0 ? 1 : Math.min(1, used / most)
}

/**
 * What a counter holds at most. With a burst this is not the limit: 40 a minute in bursts of up to 12 is used up with
 * 12. A counter above a limit that was lowered holds the limit.
 */
function mostOf({ limit, used, remaining }: { limit: number; used: number; remaining: number }): number {
  return remaining > 0 ? used + remaining : Math.min(limit, used)
}
