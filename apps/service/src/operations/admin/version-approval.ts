import { isDeepStrictEqual } from 'node:util'
import type { VersionApproval } from '@sluice/config-store'
import type { OperationRequest } from '../handler.ts'
import { refusal } from '../problems.ts'

/** The parts of a rule set that only an admin changes, and what they are called in messages. */
const RESERVED: readonly (readonly [part: 'exemptions' | 'denyList', name: string])[] = [
  ['exemptions', 'exemptions'],
  ['denyList', 'deny list'],
]

/**
 * Refuses a rule set in the place of the enforced one when it would change what whoever asks may not change part by part.
 * Undefined for an admin, who may change everything.
 */
export function approvalOf({ principal }: OperationRequest): VersionApproval | undefined {
  if (principal?.role === 'admin') return undefined
  return (after, before) => {
    const changed = RESERVED.filter(([part]) => !isDeepStrictEqual(after[part] ?? [], before[part] ?? []))
    if (changed.length === 0) return
    const parts = changed.map(([, name]) => name).join(' and ')
    throw refusal(
      'SLUICE_HTTP_FORBIDDEN',
      `The rule set has other ${parts} than the enforced one. To change these takes an API key with the role "admin": use one, or leave them as they are.`,
    )
  }
}
