import type { Flag } from './flag.ts'
import { flag, toggle } from './flag.ts'

/** Flags of every command. */
export const COMMON_FLAGS: Readonly<Record<'json' | 'help', Flag<'switch'>>> = {
  json: toggle('Print the result as JSON.'),
  help: toggle('Show help for the command.'),
}

/** Flags of every command that asks the service. */
export const SERVICE_FLAGS: {
  readonly url: Flag<'text'>
  readonly key: Flag<'text'>
  readonly timeout: Flag<'duration'>
} = {
  url: flag('text', '<address>', 'Address of the service. Default: SLUICE_URL, or http://127.0.0.1:8080.'),
  key: flag('text', '<api-key>', 'API key. Prefer SLUICE_API_KEY: flags are visible in "ps".'),
  timeout: flag('duration', '<duration>', 'Timeout of a request. Default: 10s.'),
}

/** What the common flags say. */
export interface CommonValues {
  readonly json: boolean
  readonly url: string | undefined
  readonly key: string | undefined
  /** In milliseconds. */
  readonly timeout: number | undefined
}
