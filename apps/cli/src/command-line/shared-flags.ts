import type { CheckRequest, Descriptors } from '@sluice/contract'
import { usageError } from '../output/cli-error.ts'
import { quoted } from '../output/text.ts'
import type { Flag, GivenFlags } from './arguments.ts'
import { flag, toggle } from './arguments.ts'

/** Flags of every command. */
export const COMMON_FLAGS: Readonly<Record<'json' | 'help', Flag<'switch'>>> = {
  json: toggle('Print the result as JSON.'),
  help: toggle('Show help for the command.'),
}

/** Flags of every command that asks the service. */
export const CONNECTION_FLAGS: {
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

/** Who is meant, by what counters are kept for. */
export const IDENTITY_FLAGS: Readonly<Record<'user' | 'api-key' | 'ip' | 'tenant', Flag<'text'>>> = {
  user: flag('text', '<id>', 'The user.'),
  'api-key': flag(
    'text',
    '<name>',
    'The API key of the caller, as checks name it; not the one to ask with, which is --key.',
  ),
  ip: flag('text', '<address>', 'The address of the caller.'),
  tenant: flag('text', '<id>', 'The tenant.'),
}

/** Who calls, where the rules have exemptions for services. */
export const CALLING_SERVICE_FLAG: Readonly<Record<'service', Flag<'text'>>> = {
  service: flag('text', '<name>', 'The internal service that calls.'),
}

/** Further dimensions. */
export const DESCRIPTOR_FLAGS: Readonly<Record<'descriptor' | 'number', Flag<'texts'>>> = {
  descriptor: flag('texts', '<name=text>', 'A further dimension; may stand several times.'),
  number: flag('texts', '<name=number>', 'A number that rules may take their cost from; may stand several times.'),
}

/** Everything that a check may say besides its resource. */
export const CHECK_FLAGS: typeof IDENTITY_FLAGS &
  typeof DESCRIPTOR_FLAGS &
  typeof CALLING_SERVICE_FLAG &
  Readonly<Record<'method' | 'region' | 'tier', Flag<'text'>>> & { readonly tokens: Flag<'whole'> } = {
  ...IDENTITY_FLAGS,
  method: flag('text', '<method>', 'The HTTP method.'),
  tokens: flag('whole', '<count>', 'Tokens to take. 1 when left out; 0 asks without taking.'),
  ...DESCRIPTOR_FLAGS,
  region: flag('text', '<name>', 'Where the call comes from.'),
  tier: flag('text', '<name>', 'The tier of the caller; looked up when left out.'),
  ...CALLING_SERVICE_FLAG,
}

/** Who is meant. */
export function identityOf(
  flags: GivenFlags<typeof IDENTITY_FLAGS>,
): Pick<CheckRequest, 'user' | 'apiKey' | 'ip' | 'tenant'> {
  const { user, 'api-key': apiKey, ip, tenant } = flags
  return present({ user, apiKey, ip, tenant })
}

/** The check that these flags say. */
export function checkOf(resource: string, flags: GivenFlags<typeof CHECK_FLAGS>): CheckRequest {
  const { method, tokens, region, tier, service } = flags
  const descriptors = descriptorsOf(flags)
  return { ...identityOf(flags), resource, ...present({ method, tokens, descriptors, region, tier, service }) }
}

/** The further dimensions; undefined when there are none. */
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

/** The same without what is undefined. */
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

/** Why a change is made. */
export const NOTE_FLAG: Flag<'text'> = flag('text', '<text>', 'Why, for the audit log.')

/** What the editor has seen. */
export const IF_VERSION_FLAG: Flag<'whole'> = flag(
  'whole',
  '<version>',
  'Only when this version is the enforced one; 0 when none may be.',
)
