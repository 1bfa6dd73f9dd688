import type { NamedSchema } from '../schema/json-schema.ts'
import { answerSchema } from '../schema/json-schema.ts'
import type { Page } from '../schema/page-schema.ts'
import { pageSchema } from '../schema/page-schema.ts'
import { count, instant, words } from '../schema/value-schemas.ts'

/** Something that was done. */
export interface AuditRecord {
  /** Rises with every record. */
  readonly number: number
  /** Milliseconds since 1970. */
  readonly at: number
  readonly by: string
  /** The id of the API key it was done with; absent for what the service did itself. */
  readonly keyId?: string
  readonly note?: string
  /** Such as `override.put`. */
  readonly action: string
  /** What it was done to, such as `user:u1 /orders`. */
  readonly target: string
  /** What exactly was touched, without secrets; absent where `before` and `after` say it. */
  readonly details?: unknown
  /** What was there, without secrets; absent where nothing was. */
  readonly before?: unknown
  /** What is there since, without secrets; absent where nothing is. */
  readonly after?: unknown
}

const EXAMPLE: AuditRecord = {
  number: 4711,
  at: 1_762_337_100_000,
  by: 'deploy',
  keyId: 'slk_3DBmkKOLiL8D',
  note: 'lower limit for exports',
  action: 'version.stage',
  target: 'version 13',
  before: { stage: 'draft' },
  after: { stage: 'shadow' },
}

/** The schema of {@link AuditRecord}. */
export const AUDIT_RECORD: NamedSchema<AuditRecord> = answerSchema('AuditRecord', {
  description: 'Something that was done.',
  examples: [EXAMPLE],
  required: {
    number: count('Rises with every record.'),
    at: instant('When.'),
    by: words('Name of the API key that did it. Several keys may have this name.'),
    action: words('What was done, such as override.put, version.stage or api-key.revoke.'),
    target: words('What it was done to. A value that could be misread is quoted as in JSON.'),
  },
  optional: {
    keyId: words(
      'Id of the API key that did it; absent for what the service did itself, and in records of older versions.',
    ),
    details: {
      description:
        'What exactly was touched, without secrets. For counters.reset: the caller, and the counters that were reset with rule, resource, dimension and entity, at most 100 of them, and counterCount, how many there were.',
    },
    note: words('Why, in the words of who did it.'),
    before: { description: 'What was there, without secrets; absent where nothing was.' },
    after: { description: 'What is there since, without secrets; absent where nothing is.' },
  },
})

/** The schema of a page of {@link AuditRecord}. */
export const AUDIT_PAGE: NamedSchema<Page<AuditRecord>> = pageSchema('AuditPage', AUDIT_RECORD.ref, EXAMPLE)
