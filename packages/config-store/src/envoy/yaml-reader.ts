import type { RuleSetProblem } from '@sluice/core/policy'
import { Scalar, visit } from 'yaml'
import { lineAt, parseYaml, type YamlDocument, yamlProblems, yamlValue } from '../file/yaml-document.ts'

const SHOWN_LENGTH = 60

const YES = /^(?:y|yes|on)$/i
const NO = /^(?:n|no|off)$/i
const GROUPED = /^[1-9][0-9]*(?:_[0-9]+)+$/
const DECIMAL = /^(?:0|[1-9][0-9_]*)$/

/**
 * A plain (unquoted) scalar that is not a string: its source text, and its value in Go's YAML. The expected type
 * decides which one counts.
 */
class Unquoted {
  readonly source: string
  readonly value: number | boolean | null

  constructor(source: string, value: number | boolean | null) {
    this.source = source
    this.value = value
  }
}

/** A parsed file. */
interface ParsedFile {
  readonly value: unknown
  readonly lined: YamlDocument
  readonly problems: readonly RuleSetProblem[]
}

/** The values of a mapping, by key. */
export type YamlFields = Readonly<Record<string, unknown>>

/**
 * Reads values as Go programs do: an unquoted number or `true` is a string where a string is expected, and a missing
 * value is an empty string. Problems are recorded with their location, and a harmless value is returned.
 */
export class YamlReader {
  readonly problems: RuleSetProblem[] = []
  /** The root value. */
  readonly root: unknown
  readonly #name: string
  readonly #lined: YamlDocument

  /** `name`: the file name in problems. */
  constructor(name: string, text: string) {
    const { value, lined, problems } = parseFile(text)
    this.#name = name
    this.#lined = lined
    this.root = value
    for (const problem of problems) this.problems.push({ ...problem, path: `${name}#${problem.path}` })
  }

  /** Records a problem. `pointer` is a JSON pointer into the file. */
  report(pointer: string, received: string, expected: string): void {
    this.problems.push({ path: `${this.#name}#${pointer}`, received, expected, line: lineAt(this.#lined, pointer) })
  }

  /** A mapping; undefined for anything else. */
  fields(value: unknown, pointer: string, expected: string): YamlFields | undefined {
    if (isMapping(value)) return value
    this.report(pointer, describe(value), expected)
    return undefined
  }

  /** A list; empty if missing or anything else. */
  list(value: unknown, pointer: string, expected: string): readonly unknown[] {
    if (Array.isArray(value)) return value
    if (!isNothing(value)) this.report(pointer, describe(value), expected)
    return []
  }

  /** A string; empty if missing or anything else. */
  text(value: unknown, pointer: string): string {
    return isNothing(value) || value === '' ? '' : this.fullText(value, pointer, 'a string')
  }

  /** A required, non-empty string; empty if it is missing or anything else. */
  fullText(value: unknown, pointer: string, expected: string): string {
    if (typeof value === 'string' && value !== '') return value
    const isWritten = value instanceof Unquoted && (typeof value.value === 'boolean' || Number.isInteger(value.value))
    if (isWritten) return value.source
    const isNumber = value instanceof Unquoted && typeof value.value === 'number'
    this.report(pointer, describe(value), isNumber ? `${expected}; put it in quotes` : expected)
    return ''
  }

  /** A boolean; false if missing or anything else. */
  flag(value: unknown, pointer: string): boolean {
    if (isNothing(value)) return false
    if (value instanceof Unquoted && typeof value.value === 'boolean') return value.value
    this.report(pointer, describe(value), 'true or false')
    return false
  }

  /** An integer from 0 to `most`; undefined for anything else. */
  whole(value: unknown, pointer: string, most: number): number | undefined {
    const number = value instanceof Unquoted && DECIMAL.test(value.source) ? value.value : undefined
    if (typeof number === 'number' && number <= most) return number
    this.report(pointer, describe(value), `a whole number from 0 to ${most}`)
    return undefined
  }

  /** A mapping of JSON values; undefined if missing or anything else. */
  data(value: unknown, pointer: string): Readonly<Record<string, unknown>> | undefined {
    if (isNothing(value)) return undefined
    const expected = 'a mapping of strings, numbers, true, false, lists and mappings'
    if (this.fields(value, pointer, expected) === undefined) return undefined
    try {
      return plain(value, []) as Record<string, unknown>
    } catch {
      this.report(pointer, 'not data that ends, or not a number', expected)
      return undefined
    }
  }
}

/** Whether the value is missing: absent, empty, `null` or `~`. */
export function isNothing(value: unknown): boolean {
  return value === undefined || (value instanceof Unquoted && value.value === null)
}

function parseFile(text: string): ParsedFile {
  const lined = parseYaml(text)
  const problems = yamlProblems(lined)
  if (problems.length > 0) return { value: undefined, lined, problems }
  visit(lined.document, {
    Scalar(key, scalar) {
      if (key !== 'key' && scalar.type === Scalar.PLAIN) scalar.value = unquoted(scalar)
    },
  })
  const content = yamlValue(lined)
  if ('problem' in content) return { value: undefined, lined, problems: [content.problem] }
  return { value: content.value, lined, problems }
}

function unquoted({ value, source = '' }: Scalar): unknown {
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return new Unquoted(source, value)
  if (YES.test(source)) return new Unquoted(source, true)
  if (NO.test(source)) return new Unquoted(source, false)
  return GROUPED.test(source) ? new Unquoted(source, Number(source.replaceAll('_', ''))) : value
}

/** The plain JSON value. Throws if it contains itself or a value that JSON does not have. */
function plain(value: unknown, above: readonly unknown[]): unknown {
  if (above.includes(value)) throw new RangeError('a value contains itself')
  if (value instanceof Unquoted) {
    if (typeof value.value === 'number' && !Number.isFinite(value.value)) throw new RangeError('not a number')
    return value.value
  }
  if (Array.isArray(value)) return value.map((item) => plain(item, [...above, value]))
  if (!isMapping(value)) return value
  const entries = Object.entries(value).map(([key, item]) => [key, plain(item, [...above, value])] as const)
  return Object.fromEntries(entries)
}

function isMapping(value: unknown): value is YamlFields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Unquoted)
}

function describe(value: unknown): string {
  if (isNothing(value)) return 'missing'
  if (value instanceof Unquoted) return value.source
  if (Array.isArray(value)) return 'a list'
  if (typeof value !== 'string') return 'a mapping'
  return JSON.stringify(value.length > SHOWN_LENGTH ? `${value.slice(0, SHOWN_LENGTH)}...` : value)
}
