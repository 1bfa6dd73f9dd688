import type { Flag } from '../parsing/flag.ts'
import { flag } from '../parsing/flag.ts'

/** Why a change is made. */
export const NOTE_FLAG: Flag<'text'> = flag('text', '<text>', 'Why, for the audit log.')
