import type { FileContent } from '@sluice/core'
import type { EntryChange } from '../change-feed.ts'
import { lineOf, lineStart } from '../follow/entry-encoding.ts'

/** The overrides and memberships of a file, and what changes when another content takes its place. */
export class FileEntries {
  /** By key. */
  #entries = new Map<string, EntryChange>()

  /** Takes the place of what was there; gives back what is another one now, and what is gone. */
  replace({ overrides, members }: FileContent): readonly EntryChange[] {
    const entries = new Map<string, EntryChange>()
    for (const entry of overrides) {
      const { dimension, entity, resource } = entry
      const change: EntryChange = { kind: 'override', key: { dimension, entity, resource }, entry }
      entries.set(lineStart(change), change)
    }
    for (const entry of members) {
      const { dimension, entity } = entry
      const change: EntryChange = { kind: 'member', key: { dimension, entity }, entry }
      entries.set(lineStart(change), change)
    }
    const changes = this.#differences(entries)
    this.#entries = entries
    return changes
  }

  #differences(entries: ReadonlyMap<string, EntryChange>): readonly EntryChange[] {
    const changes: EntryChange[] = []
    for (const [key, before] of this.#entries) {
      if (!entries.has(key)) changes.push({ ...before, entry: undefined } as EntryChange)
    }
    for (const [key, change] of entries) {
      const before = this.#entries.get(key)
      if (before === undefined || lineOf(before) !== lineOf(change)) changes.push(change)
    }
    return changes
  }
}
