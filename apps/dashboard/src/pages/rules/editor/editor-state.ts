import type { ReadonlySignal } from '@preact/signals'
import { signal } from '@preact/signals'
import type { EditBase, RuleDocument } from '../document/rule-document.ts'
import { openDocument, withText } from '../document/rule-document.ts'

/** Where an edit survives a reload of the page, a session that ends, and a browser that goes back. */
const STORED_UNDER = 'sluice.rule-edit'

const current = signal<RuleDocument | undefined>(undefined)

/** The document that is being edited; undefined when none is open. It stays while other pages are looked at. */
export const editing: ReadonlySignal<RuleDocument | undefined> = current

/** Keeps an edit. */
export function keepEdit(document: RuleDocument): void {
  current.value = document
  const { base, text } = document
  sessionStorage.setItem(STORED_UNDER, JSON.stringify({ base, text }))
}

/** Forgets the edit: it was published, or thrown away. */
export function dropEdit(): void {
  current.value = undefined
  sessionStorage.removeItem(STORED_UNDER)
}

/**
 * Opens an edit of what is enforced, or goes on with the one that was begun. Resolves with whether it was begun before
 * the page was loaded.
 */
export function openEdit(enforced: EditBase): boolean {
  if (current.peek() !== undefined) return false
  const restored = restoredEdit()
  current.value = restored ?? openDocument(enforced)
  return restored !== undefined
}

function restoredEdit(): RuleDocument | undefined {
  try {
    const stored = JSON.parse(sessionStorage.getItem(STORED_UNDER) ?? 'null') as { base: EditBase; text: string } | null
    return stored === null ? undefined : withText(openDocument(stored.base), stored.text)
  } catch {
    // What another version of the page kept is not worth an error.
    sessionStorage.removeItem(STORED_UNDER)
    return undefined
  }
}
