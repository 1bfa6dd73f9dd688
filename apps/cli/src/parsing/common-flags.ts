import type { Flag } from './flag.ts'
import { flag, toggle } from './flag.ts'

/** Flags of every command. */
export const COMMON_FLAGS: Readonly<Record<'json' | 'help', Flag<'switch'>>> = {
  json: toggle('Print the result as JSON.'),
  help: toggle('Print what the command does, and an example.'),
}

/** Flags of every command that asks the service. */
export const SERVICE_FLAGS: {
  readonly url: Flag<'text'>
  readonly key: Flag<'text'>
  readonly timeout: Flag<'duration'>
} = {
  url: flag('text', '<address>', 'Where the service is. SLUICE_URL, else http://127.0.0.1:8080, when left out.'),
  key: flag(
    'text',
    '<api-key>',
    'The API key; better in SLUICE_API_KEY, which no list of processes shows. Never printed.',
  ),
  timeout: flag('duration', '<duration>', 'How long to wait for an answer. 10s when left out.'),
}

/** What the common flags say. */
export interface CommonValues {
  readonly json: boolean
  readonly url: string | undefined
  readonly key: string | undefined
  /** In milliseconds. */
  readonly timeout: number | undefined
}
