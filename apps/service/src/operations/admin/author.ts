import type { Author } from '@sluice/config-store'
import type { OperationRequest } from '../handler.ts'

/** Who asks for a change, and why, as the audit log has it. */
export function authorOf({ principal, body }: OperationRequest): Author {
  // The table of operations asks for a role wherever something is changed, so that nothing is ever changed by nobody.
  if (principal === undefined) throw new Error('a change was asked for without an API key')
  const note = typeof body === 'object' && body !== null && 'note' in body ? body.note : undefined
  return { name: principal.name, keyId: principal.id, ...(typeof note === 'string' ? { note } : {}) }
}
