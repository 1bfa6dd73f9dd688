import { SluiceError } from '@sluice/core'
import type { Seen } from '../entries.ts'

/** What is there. */
export interface Found {
  /** Undefined when nothing is. */
  readonly revision: number | undefined
  /** What it is called in a message. */
  readonly what: string
}

/** Throws `SLUICE_CONFLICT` when an editor has seen something else than what is there. */
export function checkSeen({ ifRevision }: Seen, { revision = 0, what }: Found): void {
  if (ifRevision === undefined || ifRevision === revision) return
  if (!(Number.isSafeInteger(ifRevision) && ifRevision >= 0)) {
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: '"ifRevision" cannot be used',
      received: ifRevision,
      expected: 'the revision that was read, or 0 when nothing was there',
    })
  }
  throw new SluiceError('SLUICE_CONFLICT', {
    problem: `${what} was changed meanwhile`,
    received: ifRevision,
    expected: revision === 0 ? 'revision 0: it is not there any more' : `revision ${revision}`,
    action: 'Read it again, and repeat the change if it still applies.',
  })
}
