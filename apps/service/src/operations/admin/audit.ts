import type { ConfigStore, ExternalAction } from '@sluice/config-store'
import type { Logger } from '@sluice/runtime'
import type { DatabaseReads } from '../../config/config-reads.ts'
import { errorFields } from '../../observability/error-fields.ts'
import type { AnyRequest, OperationHandlers } from '../handler.ts'
import { pageAnswer } from '../handler.ts'
import { authorOf } from './config-access.ts'

/** What notes are written with. */
export interface AuditNotesParts {
  /** The database of the audit log; undefined without one. */
  readonly config: Pick<ConfigStore, 'audit'> | undefined
  readonly log: Logger
}

/** Records actions on counters and alerts in the audit log. The database does not keep these itself. */
export class AuditNotes {
  readonly #config: Pick<ConfigStore, 'audit'> | undefined
  readonly #log: Logger

  constructor({ config, log }: AuditNotesParts) {
    this.#config = config
    this.#log = log
  }

  /**
   * Records an action of the caller that has just been done. Never rejects: some actions must work while the database
   * is unreachable, such as silencing the alert about it. The log then has the record.
   */
  async note(request: Pick<AnyRequest, 'principal' | 'body'>, done: ExternalAction): Promise<void> {
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

/** Where the audit log is read. */
export interface AuditReads {
  readonly access: { readonly databaseReads: Pick<DatabaseReads, 'audit'> }
}

/** The audit log, newest first. */
export function auditHandlers({ access }: AuditReads): OperationHandlers<'listAudit'> {
  return {
    listAudit: async ({ parameters }) => pageAnswer(await access.databaseReads.audit.list(parameters)),
  }
}
