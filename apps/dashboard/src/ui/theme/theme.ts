import type { ReadonlySignal } from '@preact/signals'
import { effect, signal } from '@preact/signals'

/** How the page chooses its colours. `system`: as the operating system does. */
export type Theme = 'system' | 'light' | 'dark'

const STORAGE_KEY = 'sluice.theme'
const chosen = signal<Theme>('system')
const revision = signal(0)
const systemDark = globalThis.matchMedia?.('(prefers-color-scheme: dark)')

/** The theme that was chosen. */
export const theme: ReadonlySignal<Theme> = chosen

/** Rises whenever colours change, so that what is drawn on a canvas is drawn again. */
export const colourRevision: ReadonlySignal<number> = revision

/** Chooses a theme and remembers it in this browser. */
export function setTheme(next: Theme): void {
  chosen.value = next
  try {
    localStorage.setItem(STORAGE_KEY, next)
  } catch {
    // Storage may be switched off: the theme holds until the page is closed.
  }
}

/** Applies the remembered theme, and every later choice. */
export function startTheme(): void {
  chosen.value = remembered()
  effect(() => {
    const root = document.documentElement
    if (chosen.value === 'system') root.removeAttribute('data-theme')
    else root.setAttribute('data-theme', chosen.value)
    revision.value = revision.peek() + 1
  })
  systemDark?.addEventListener('change', () => {
    revision.value = revision.peek() + 1
  })
}

function remembered(): Theme {
  try {
    const text = localStorage.getItem(STORAGE_KEY)
    return text === 'light' || text === 'dark' ? text : 'system'
  } catch {
    return 'system'
  }
}
