import { signal } from '@preact/signals'
import type { JSX } from 'preact'
import { asApiError } from '../../api/api-error.ts'
import { after } from '../../clock-and-timers.ts'
import { Button } from '../controls/button.tsx'
import classes from './overlay.module.css'

const SHOWN_MS = 6000
const MOST_TOASTS = 4

interface Toast {
  readonly id: number
  readonly tone: 'accent' | 'danger'
  readonly text: string
}

const toasts = signal<readonly Toast[]>([])
let lastId = 0

/** Says that something was done. It goes away after 6 s. */
export function showToast(text: string): void {
  const id = add('accent', text)
  after(SHOWN_MS, () => remove(id))
}

/** Says what failed. It stays until it is closed. */
export function showFailure(error: unknown): void {
  const { title, message } = asApiError(error)
  add('danger', `${title}. ${message}`)
}

function add(tone: Toast['tone'], text: string): number {
  lastId += 1
  toasts.value = [...toasts.value, { id: lastId, tone, text }].slice(-MOST_TOASTS)
  return lastId
}

function remove(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id)
}

/** Where toasts appear. The shell has the only one. */
export function Toasts(): JSX.Element {
  return (
    <div class={classes.toasts} role="status" aria-live="polite">
      {toasts.value.map(({ id, tone, text }) => (
        <div key={id} class={classes.toast} data-tone={tone}>
          <div class={classes.toastText}>{text}</div>
          <Button kind="quiet" icon="close" label="Close message" onClick={() => remove(id)} />
        </div>
      ))}
    </div>
  )
}
