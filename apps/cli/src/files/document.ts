import { parseDocument } from 'yaml'
import { parseInstant } from '../command-line/arguments.ts'
import { CliError } from '../output/cli-error.ts'

/** Fields that hold instants: files may write them as dates. */
const INSTANT_FIELDS: ReadonlySet<string> = new Set(['expiresAt', 'until'])

/** Most places that an alias of a YAML file may stand for: a short file must not become a long one. */
const MOST_ALIASES = 10_000

/**
 * The value in a text of YAML or JSON. Dates of fields that hold instants become milliseconds since 1970. Throws
 * `SLUICE_CLI_INVALID_FILE` with the line when it is neither.
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

/** A file that cannot be used, and why. */
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

/** The one part of a rule set in a text of YAML or JSON, which has a name. `noun`: what it should be. */
export function namedDocument<T extends { readonly name: string }>(text: string, path: string, noun: string): T {
  const document = parseDocumentText(text, path)
  const isNamed = typeof document === 'object' && document !== null && 'name' in document
  if (isNamed && typeof document.name === 'string' && document.name !== '') return document as T
  throw invalidFile(path, `there is no "name" in it; expected one ${noun}, by the fields that a rule set has for it.`)
}
