import type { Author } from './author.ts'
import type { Page, PageRequest } from './page.ts'

/** Something that was done. */
export interface AuditRecord {
  /** Rises with every record. */
  readonly number: number
  /** Milliseconds since 1970. */
  readonly at: number
  readonly by: string
  /** The id of the API key it was done with; undefined for what the service did itself, and in records of older versions. */
  readonly keyId: string | undefined
  readonly note: string | undefined
  /** Such as `override.put`, `version.stage`, `api-key.revoke`. */
  readonly action: string
  /** What it was done to, such as `user:u1 /orders` or `version 12`. A value that could be misread is quoted as in JSON. */
  readonly target: string
  /** What exactly was touched, where it was not an entry of this store; without secrets. */
  readonly details: unknown
  /** The entry before and after, without secrets; undefined where there is none. */
  readonly before: unknown
  readonly after: unknown
}

/** Something that was done outside of this store. */
export interface DoneElsewhere extends Pick<AuditRecord, 'action' | 'target'> {
  readonly details?: unknown
}

/** What was done, newest first. Nothing is ever changed or removed in it. */
export interface AuditLog {
  /** Notes something that was done elsewhere, such as counters that were reset. Changes in this store are noted by themselves. */
  add(done: DoneElsewhere, author: Author): Promise<void>
  list(
    filter?: PageRequest & {
      readonly by?: string
      readonly keyId?: string
      readonly action?: string
      /** Records from then on; milliseconds since 1970. */
      readonly since?: number
    },
  ): Promise<Page<AuditRecord>>
}
