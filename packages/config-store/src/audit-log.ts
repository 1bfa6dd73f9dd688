import type { Author } from './author.ts'
import type { Page, PageRequest } from './page.ts'

/** Something that was done. */
export interface AuditRecord {
  /** Rises with every record. */
  readonly number: number
  /** Milliseconds since 1970. */
  readonly at: number
  readonly by: string
  readonly note: string | undefined
  /** Such as `override.put`, `version.stage`, `api-key.revoke`. */
  readonly action: string
  /** What it was done to, such as `user:u1 /orders` or `version 12`. */
  readonly target: string
  /** The entry before and after, without secrets; undefined where there is none. */
  readonly before: unknown
  readonly after: unknown
}

/** What was done, newest first. Nothing is ever changed or removed in it. */
export interface AuditLog {
  /** Notes something that was done elsewhere, such as counters that were reset. Changes in this store are noted by themselves. */
  add(done: Pick<AuditRecord, 'action' | 'target'>, author: Author): Promise<void>
  list(
    filter?: PageRequest & {
      readonly by?: string
      readonly action?: string
      /** Records from then on; milliseconds since 1970. */
      readonly since?: number
    },
  ): Promise<Page<AuditRecord>>
}
