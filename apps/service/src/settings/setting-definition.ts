import type { JsonSchema } from '@sluice/core/internal'

/** One thing that can be set. */
export interface SettingDefinition {
  /** Without the two dashes. */
  readonly flag: string
  /** Of the environment. */
  readonly variable: string
  /** What stands for its value in the help; empty for a switch, which needs none. */
  readonly argument: string
  /** What it does, and what holds when it is left out. */
  readonly help: string
  /** What its value must be. `title` is what is expected, as the rest of a sentence. */
  readonly schema: JsonSchema
  /** Whether a value may hold a password. It is never shown then. */
  readonly isSecret?: boolean
}

const HIGHEST_PORT = 65_535

/** Texts of one line without what terminals and logs would take for commands. */
export const PLAIN_TEXT = '^[^\\p{Cc}]+$'

/** A port from 0 to 65535. */
export const PORT_SCHEMA: JsonSchema = { type: 'integer', minimum: 0, maximum: HIGHEST_PORT }

export const PORT_OR_OFF: JsonSchema = {
  anyOf: [PORT_SCHEMA, { const: 'off' }],
  title: `a port from 0 to ${HIGHEST_PORT}, or off`,
}

/** A host with a scheme, a port or spaces is a mistake that the resolver would only call "not found". */
export const HOST_SCHEMA: JsonSchema = {
  type: 'string',
  pattern: '^(?![^:]*:\\d*$)[\\w.:%\\-]+$',
  title: 'an address or host name, such as 127.0.0.1',
}

/** A listener that is off until it has a port. */
export function portSetting(flag: string, variable: string, listener: string): SettingDefinition {
  const help = `Port of ${listener}; 0 for any free port. Default: off.`
  return { flag, variable, argument: '<number>', help, schema: PORT_OR_OFF }
}

/** A listener that can have an address of its own. */
export function hostSetting(flag: string, variable: string, listener: string): SettingDefinition {
  return {
    flag,
    variable,
    argument: '<address>',
    help: `Address of ${listener}. Default: that of --host.`,
    schema: HOST_SCHEMA,
  }
}

type TlsSettingName = 'TlsCert' | 'TlsKey' | 'TlsClientCa'

/** The three settings of the TLS files of a listener. Its name begins their names. */
export function tlsSettings<Name extends string>(
  name: Name,
  listener: string,
): Readonly<Record<`${Name}${TlsSettingName}`, SettingDefinition>> {
  const file = (part: string, help: string): SettingDefinition => ({
    flag: `${name}-tls-${part}`,
    variable: `SLUICE_${name.toUpperCase()}_TLS_${part.toUpperCase().replace('-', '_')}`,
    argument: '<file>',
    help,
    schema: { type: 'string', pattern: PLAIN_TEXT, title: 'the path of a file' },
  })
  return {
    [`${name}TlsCert`]: file('cert', `Certificate of ${listener}, PEM, with its chain. Default: plain text.`),
    [`${name}TlsKey`]: file('key', 'Private key of that certificate, PEM.'),
    [`${name}TlsClientCa`]: file(
      'client-ca',
      'Issuers of client certificates, PEM: every client needs one, and no API key. Default: none.',
    ),
  } as Readonly<Record<`${Name}${TlsSettingName}`, SettingDefinition>>
}
