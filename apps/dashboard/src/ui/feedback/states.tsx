import type { ReadonlySignal } from '@preact/signals'
import type { ComponentChildren, JSX } from 'preact'
import type { ApiError } from '../../api/api-error.ts'
import { isReachable } from '../../api/connection.ts'
import type { Loaded } from '../../api/query.ts'
import { Button } from '../controls/button.tsx'
import type { IconName } from '../theme/icon.tsx'
import { Icon } from '../theme/icon.tsx'
import classes from './feedback.module.css'

export interface EmptyProps {
  readonly title: string
  /** What would be here, and how it comes about. */
  readonly children?: ComponentChildren
  readonly icon?: IconName
  /** A button for the next step. */
  readonly action?: ComponentChildren
}

/** Stands where there is nothing to show. */
export function Empty({ title, children, icon = 'search', action }: EmptyProps): JSX.Element {
  return (
    <div class={classes.state}>
      <Icon name={icon} />
      <strong>{title}</strong>
      {children === undefined ? null : <p>{children}</p>}
      {action}
    </div>
  )
}

/** Stands where something is loaded for the first time. */
export function Loading({ label = 'Loading', lines = 4 }: { label?: string; lines?: number }): JSX.Element {
  return (
    <div class={classes.bars} role="status">
      <span class="visually-hidden">{label}</span>
      {Array.from({ length: lines }, (_, index) => (
        <div key={index} class={classes.bar} />
      ))}
    </div>
  )
}

export interface NoticeProps {
  readonly tone?: 'neutral' | 'warning' | 'danger'
  readonly icon?: IconName
  readonly children: ComponentChildren
  readonly action?: ComponentChildren
}

/** A message inside a page. */
export function Notice({ tone = 'neutral', icon = 'warning', children, action }: NoticeProps): JSX.Element {
  return (
    <div class={classes.notice} data-tone={tone} role={tone === 'danger' ? 'alert' : undefined}>
      <Icon name={icon} />
      <div class={classes.noticeText}>{children}</div>
      {action}
    </div>
  )
}

export interface ErrorNoticeProps {
  readonly error: ApiError
  readonly onRetry?: (() => void) | undefined
}

/** A failed call: what is wrong, what was received and expected, what to do. */
export function ErrorNotice({ error, onRetry }: ErrorNoticeProps): JSX.Element {
  const retry = onRetry === undefined ? undefined : <Button onClick={onRetry}>Try again</Button>
  return (
    <Notice tone="danger" action={retry}>
      <strong>{error.title}.</strong> {error.message}{' '}
      {error.problem === undefined ? null : <code class={classes.code}>{error.problem.code}</code>}
      {error.fields.length === 0 ? null : (
        <ul class={classes.fields}>
          {error.fields.map(({ path, received, expected }) => (
            <li key={path}>
              <code>{path === '' ? 'the whole body' : path}</code>: received <code>{received}</code>; expected{' '}
              {expected}
            </li>
          ))}
        </ul>
      )}
    </Notice>
  )
}

/** Says that the service does not answer. Nothing while it does. The shell has one above every page. */
export function OfflineNotice(): JSX.Element | null {
  if (isReachable.value) return null
  return (
    <Notice tone="warning">
      <strong>The service does not answer.</strong> The figures below are the last known ones. The page reconnects by
      itself.
    </Notice>
  )
}

/** Says why a page cannot be changed. */
export function ReadOnlyNotice({ needed, role }: { needed: string; role: string }): JSX.Element {
  return (
    <Notice icon="lock">
      <strong>Read only.</strong> Your API key has the role {role}; changes here need the role {needed}.
    </Notice>
  )
}

export interface LoadedViewProps<T> {
  readonly state: ReadonlySignal<Loaded<T>>
  readonly onRetry?: () => void
  readonly children: (value: T) => ComponentChildren
}

/** Shows a query: bars while it is loaded first, the error, or its value. An old value stays below a new error. */
export function LoadedView<T>({ state, onRetry, children }: LoadedViewProps<T>): JSX.Element {
  const { value, error } = state.value
  return (
    <>
      {error === undefined ? null : <ErrorNotice error={error} onRetry={onRetry} />}
      {value === undefined ? null : children(value)}
      {value === undefined && error === undefined ? <Loading /> : null}
    </>
  )
}
