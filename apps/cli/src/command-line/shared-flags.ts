import type { CheckRequest, Descriptors } from '@sluice/contract'
import { usageError } from '../output/cli-error.ts'
import { quoted } from '../output/text.ts'
import type { Flag, GivenFlags } from './command.ts'
import { flag, toggle } from './command.ts'

/** Flags of every command. */
export const COMMON_FLAGS: Readonly<Record<'json' | 'help', Flag<'switch'>>> = {
  json: toggle('Print the result as JSON.'),
  help: toggle('Show help for the command.'),
}

/** Flags of every command that calls the service. */
export const CONNECTION_FLAGS: {
  readonly url: Flag<'text'>
  readonly key: Flag<'text'>
  readonly timeout: Flag<'duration'>
} = {
  url: flag('text', '<address>', 'Address of the service. Default: SLUICE_URL, or http://127.0.0.1:8080.'),
  key: flag('text', '<api-key>', 'API key. Prefer SLUICE_API_KEY: flags are visible in "ps".'),
  timeout: flag('duration', '<duration>', 'Timeout of a request. Default: 10s.'),
}

/** Parsed values of the common flags. */
export interface CommonValues {
  readonly json: boolean
  readonly url: string | undefined
  readonly key: string | undefined
  /** Milliseconds. */
  readonly timeout: number | undefined
}

/** The caller. */
export const IDENTITY_FLAGS: Readonly<Record<'user' | 'api-key' | 'ip' | 'tenant', Flag<'text'>>> = {
  user: flag('text', '<id>', 'User id of the caller.'),
  'api-key': flag(
    'text',
    '<name>',
    'API key of the caller, as checks send it. Not the key of this command, which is --key.',
  ),
  ip: flag('text', '<address>', 'IP address of the caller.'),
  tenant: flag('text', '<id>', 'Tenant of the caller.'),
}

/** The internal service that calls. Exemptions can match it. */
export const CALLING_SERVICE_FLAG: Readonly<Record<'service', Flag<'text'>>> = {
  service: flag('text', '<name>', 'Internal service that calls.'),
}

/** Custom dimensions. */
export const DESCRIPTOR_FLAGS: Readonly<Record<'descriptor' | 'number', Flag<'texts'>>> = {
  descriptor: flag('texts', '<name=text>', 'Custom dimension. Repeatable.'),
  number: flag('texts', '<name=number>', 'Custom number, for rules that derive the cost from it. Repeatable.'),
}

/** Every field of a check but its resource. */
export const CHECK_FLAGS: typeof IDENTITY_FLAGS &
  typeof DESCRIPTOR_FLAGS &
  typeof CALLING_SERVICE_FLAG &
  Readonly<Record<'method' | 'region' | 'tier', Flag<'text'>>> & { readonly tokens: Flag<'whole'> } = {
  ...IDENTITY_FLAGS,
  method: flag('text', '<method>', 'HTTP method.'),
  tokens: flag('whole', '<count>', 'Tokens to consume; 0 consumes nothing. Default: 1.'),
  ...DESCRIPTOR_FLAGS,
  region: flag('text', '<name>', 'Region of the caller.'),
  tier: flag('text', '<name>', 'Tier of the caller. Default: its membership.'),
  ...CALLING_SERVICE_FLAG,
}

/** The caller that these flags describe. */
export function identityOf(
  flags: GivenFlags<typeof IDENTITY_FLAGS>,
): Pick<CheckRequest, 'user' | 'apiKey' | 'ip' | 'tenant'> {
  const { user, 'api-key': apiKey, ip, tenant } = flags
  return present({ user, apiKey, ip, tenant })
}

/** The check that these flags describe. */
export function checkOf(resource: string, flags: GivenFlags<typeof CHECK_FLAGS>): CheckRequest {
  const { method, tokens, region, tier, service } = flags
  const descriptors = descriptorsOf(flags)
  return { ...identityOf(flags), resource, ...present({ method, tokens, descriptors, region, tier, service }) }
}

/** Custom dimensions; undefined if there are none. */
export function descriptorsOf({ descriptor, number }: GivenFlags<typeof DESCRIPTOR_FLAGS>): Descriptors | undefined {
  const entries = [
    ...descriptor.map((text): [string, string] => pair('descriptor', text)),
    ...number.map((text): [string, number] => {
      const [name, value] = pair('number', text)
      if (/^-?\d{1,15}(?:\.\d{1,9})?$/.test(value)) return [name, Number(value)]
      throw usageError(`--number got ${quoted(text)}; expected a name, "=" and a number, such as bytes=2048.`)
    }),
  ]
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

/** A copy without undefined values. */
export function present<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }
}

function pair(name: string, text: string): [string, string] {
  const equals = text.indexOf('=')
  if (equals > 0) return [text.slice(0, equals), text.slice(equals + 1)]
  throw usageError(`--${name} got ${quoted(text)}; expected a name, "=" and its value.`)
}

export const NOTE_FLAG: Flag<'text'> = flag('text', '<text>', 'Why, for the audit log.')

export const IF_VERSION_FLAG: Flag<'whole'> = flag(
  'whole',
  '<version>',
  'Only if this version is enforced; 0: only if none is.',
)
