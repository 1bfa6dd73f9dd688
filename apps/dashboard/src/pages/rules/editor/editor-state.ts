import type { ReadonlySignal } from '@preact/signals'
import { signal } from '@preact/signals'
import type { RuleSet } from '@sluice/core/policy'
import type { EditBase, LooseRuleSet, RuleDocument } from '../document/rule-document.ts'
import { changesOf, isValid, openDocument, withText, withValue } from '../document/rule-document.ts'

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

/** Opens an edit with other rules than those it began with, in the place of any other. */
export function openEditOf(base: EditBase, ruleSet: RuleSet): void {
  keepEdit(withValue(openDocument(base), ruleSet as unknown as LooseRuleSet))
}

/** Changes that an edit has which was neither published nor thrown away. */
export function pendingChanges(): number {
  const document = current.peek() ?? restoredEdit()
  if (document === undefined) return 0
  // What cannot be published yet is work too.
  return isValid(document) ? changesOf(document).length : 1
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
