import type { ComponentChildren, JSX } from 'preact'
import { setQuery } from '../navigation/router.ts'
import { Icon } from '../theme/icon.tsx'
import classes from './controls.module.css'

/** What a badge says by its colour. Its text says the same. */
export type Tone = 'neutral' | 'good' | 'warning' | 'danger' | 'denied' | 'accent'

/** A word about the state of something. */
export function Badge({ tone = 'neutral', children }: { tone?: Tone; children: ComponentChildren }): JSX.Element {
  return (
    <span class={classes.badge} data-tone={tone}>
      {children}
    </span>
  )
}

/** A filter that holds: a parameter of the URL and its value. */
export interface FilterChip {
  readonly parameter: string
  readonly label: string
  readonly value: string | undefined
}

/** The filters that hold, each with a button that removes it. Nothing when there is none. */
export function FilterChips({ filters }: { filters: readonly FilterChip[] }): JSX.Element | null {
  const active = filters.filter(({ value }) => value !== undefined && value !== '')
  if (active.length === 0) return null
  return (
    <ul class={classes.chips} aria-label="Filters">
      {active.map(({ parameter, label, value }) => (
        <li key={parameter} class={classes.chip}>
          {label} <b>{value}</b>
          <button
            type="button"
            class={classes.chipRemove}
            aria-label={`Remove filter ${label} ${value}`}
            onClick={() => setQuery({ [parameter]: undefined })}
          >
            <Icon name="close" />
          </button>
        </li>
      ))}
    </ul>
  )
}
