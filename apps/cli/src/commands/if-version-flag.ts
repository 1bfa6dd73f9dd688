import type { Flag } from '../parsing/flag.ts'
import { flag } from '../parsing/flag.ts'

/** What the editor has seen. */
export const IF_VERSION_FLAG: Flag<'whole'> = flag(
  'whole',
  '<version>',
  'Only when this version is the enforced one; 0 when none may be.',
)
