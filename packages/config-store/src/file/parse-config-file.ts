import { fileContent, gatewayPartsOf } from '@sluice/core/internal'
import type { FileContent, GatewayParts, RuleSetCheckOptions, RuleSetFile, RuleSetProblem } from '@sluice/core/policy'
import { checkRuleSetFile, RuleSetError } from '@sluice/core/policy'
import { jsonErrorOffset } from './json-syntax.ts'
import { lineAt, parseYaml, yamlProblems, yamlValue } from './yaml-document.ts'

/** A larger configuration belongs into a database. */
const LARGEST_BYTES = 33_554_432

/** Maximum length of the excerpt in a message. */
const SHOWN_LENGTH = 30

/** Everything that is wrong with the parts for a gateway, with paths such as `/routes/0/upstream`. Never throws. */
export type CheckGateway = (parts: GatewayParts) => readonly RuleSetProblem[]

/** What a file is checked against. */
export interface FileCheckOptions extends RuleSetCheckOptions {
  /** Default: the parts for a gateway are not checked. */
  readonly checkGateway?: CheckGateway
  /** Whether `rules` must be there. False for a file of a gateway whose rules are elsewhere. Default: true. */
  readonly needsRules?: boolean
}

/**
 * Parses a configuration file: YAML 1.2, or JSON if its name ends in `.json`. Anchors, aliases and `<<` are allowed,
 * tags are not. Throws a `RuleSetError` with all problems and their lines.
 */
export function parseConfigFile(
  bytes: Uint8Array,
  name: string,
  { needsRules = true, ...options }: FileCheckOptions = {},
): FileContent {
  const text = taken(textOf(bytes), name)
  if (name.toLowerCase().endsWith('.json')) reject(jsonProblems(text), name)
  const lined = parseYaml(text)
  reject(yamlProblems(lined), name)
  const written = taken(yamlValue(lined), name)
  const value = needsRules || !isObject(written) ? written : { rules: [], ...written }
  reject(
    problemsOf(value, options).map((problem) => ({ ...problem, line: lineAt(lined, problem.path) })),
    name,
  )
  return fileContent(value as RuleSetFile)
}

/** The problems of the rule set, and those of the gateway where its parts have the right type. */
function problemsOf(value: unknown, { checkGateway, ...options }: FileCheckOptions): readonly RuleSetProblem[] {
  const problems = checkRuleSetFile(value, options)
  const parts = isObject(value) ? gatewayPartsOf(value) : undefined
  if (checkGateway === undefined || parts === undefined) return problems
  const wrong = new Set(problems.map(({ path }) => path))
  const isUsable = ['/gateway', '/routes', '/upstreams'].every((path) => !wrong.has(path))
  return isUsable ? [...problems, ...checkGateway(parts)] : problems
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A value or a problem. */
type Reading<T> = { readonly value: T } | { readonly problem: RuleSetProblem }

function textOf(bytes: Uint8Array): Reading<string> {
  if (bytes.length > LARGEST_BYTES) {
    const expected = `at most ${LARGEST_BYTES} bytes; keep this number of entries in a database`
    return { problem: { path: '', received: `${bytes.length} bytes long`, expected } }
  }
  try {
    return { value: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }
  } catch {
    return { problem: { path: '', received: 'invalid UTF-8', expected: 'UTF-8' } }
  }
}

/** JSON is YAML, but YAML is not always JSON. */
function jsonProblems(text: string): readonly RuleSetProblem[] {
  const offset = jsonErrorOffset(text)
  if (offset === undefined) return []
  const line = text.slice(0, offset).split('\n').length
  const rest = text.slice(offset).split('\n')[0]!.slice(0, SHOWN_LENGTH)
  const received = rest.trim() === '' ? 'not JSON: it ends too soon' : `not JSON at ${JSON.stringify(rest)}`
  return [{ path: '', received, expected: 'JSON', line }]
}

function taken<T>(reading: Reading<T>, name: string): T {
  if ('problem' in reading) throw new RuleSetError([reading.problem], name)
  return reading.value
}

function reject(problems: readonly RuleSetProblem[], name: string): void {
  if (problems.length > 0) throw new RuleSetError(problems, name)
}
