import type { Author, ConfigStore, ExternalAction } from '@sluice/config-store'
import type { Logger } from '@sluice/runtime'
import { errorFields } from '../../observability/error-fields.ts'
import type { AnyRequest } from '../handler.ts'

/** What notes are written with. */
export interface AuditNotesParts {
  /** The database whose audit log it is; undefined where there is none. */
  readonly config: Pick<ConfigStore, 'audit'> | undefined
  readonly log: Logger
}

/** Notes in the audit log what was done to counters and alerts, which are not kept in the database. */
export class AuditNotes {
  readonly #config: Pick<ConfigStore, 'audit'> | undefined
  readonly #log: Logger

  constructor({ config, log }: AuditNotesParts) {
    this.#config = config
    this.#log = log
  }

  /**
   * Notes what was done just now, in the name of whoever asked. Never rejects: it is done by then, and what must be done while the
   * database is away, such as to silence the alert that says so, is done all the same. The log has it then.
   */
  async note(request: AnyRequest, done: ExternalAction): Promise<void> {
    const author = authorOf(request)
    try {
      if (this.#config === undefined) throw new Error('there is no database with an audit log')
      await this.#config.audit.add(done, author)
    } catch (error) {
      this.#log.warn('could not write to the audit log', {
        by: author.name,
        keyId: author.keyId,
        action: done.action,
        error: errorFields(error),
      })
    }
  }
}

/** Who asks for a change, and why, as the audit log has it. */
export function authorOf({ principal, body }: AnyRequest): Author {
  // The table of operations asks for a role wherever something is changed, so that nothing is ever changed by nobody.
  if (principal === undefined) throw new Error('a change was asked for without an API key')
  const note = typeof body === 'object' && body !== null && 'note' in body ? body.note : undefined
  return { name: principal.name, keyId: principal.id, ...(typeof note === 'string' ? { note } : {}) }
}
