import { parseDocument } from 'yaml'
import { parseInstant } from '../command-line/command.ts'
import { CliError } from '../output/cli-error.ts'

/** Fields that contain instants. Files may write them as dates. */
const INSTANT_FIELDS: ReadonlySet<string> = new Set(['expiresAt', 'until'])

/** Limit on YAML aliases: a short file must not expand to a huge document. */
const MOST_ALIASES = 10_000

/**
 * Parses YAML or JSON. Dates in instant fields become milliseconds since 1970. Throws `SLUICE_CLI_INVALID_FILE` with
 * the line of the first error.
 */
export function parseDocumentText(text: string, path: string): unknown {
  const document = parseDocument(text, { logLevel: 'error', merge: true })
  const [error] = document.errors
  if (error !== undefined) throw invalidFile(path, error.message.split('\n')[0]!.replace(/:$/, ''))
  try {
    return withInstants(document.toJS({ maxAliasCount: MOST_ALIASES }))
  } catch (cause) {
    throw invalidFile(path, (cause as Error).message)
  }
}

/** Error for an invalid file. */
export function invalidFile(path: string, why: string): CliError {
  return new CliError('SLUICE_CLI_INVALID_FILE', { detail: `${path}: ${why}` })
}

function withInstants(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withInstants)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => [
      name,
      INSTANT_FIELDS.has(name) ? instantOf(part) : withInstants(part),
    ]),
  )
}

function instantOf(value: unknown): unknown {
  return typeof value === 'string' ? (parseInstant(value) ?? value) : value
}

/** Parses a file with one named entry of a rule set. `noun` names the kind of entry in the error. */
export function parseNamedDocument<T extends { readonly name: string }>(text: string, path: string, noun: string): T {
  const document = parseDocumentText(text, path)
  const isNamed = typeof document === 'object' && document !== null && 'name' in document
  if (isNamed && typeof document.name === 'string' && document.name !== '') return document as T
  throw invalidFile(path, `"name" is missing; expected one ${noun} with the fields of a rule set.`)
}
