import type { JSX } from 'preact'
import classes from './controls.module.css'

export interface MeterProps {
  readonly value: number
  /** The value of a full meter; above 0. */
  readonly most: number
  /** What the value says, for screen readers. */
  readonly label: string
  /** Default: `room`. */
  readonly state?: 'room' | 'near' | 'full'
}

/** A bar that says how much of something is used. Browsers draw their own meters each in another way. */
export function Meter({ value, most, label, state = 'room' }: MeterProps): JSX.Element {
  const shown = Math.min(value, most)
  return (
    <div class={classes.meter} data-state={state}>
      <meter class="visually-hidden" min={0} max={most} value={shown} aria-label={label} />
      <div style={{ width: `${(100 * shown) / most}%` }} />
    </div>
  )
}
