import { nearestName } from '../../../options/option-advice.ts'
import type { RuleSetProblem } from '../rule-set-error.ts'
import type { JsonSchema } from '../schema/rule-set-json-schema.ts'
import type { SchemaNode } from '../schema/schema-node.ts'
import { describeValue, SchemaNodes, typeBits } from '../schema/schema-node.ts'

/** Maximum depth of a document. Also ends the check of an object that contains itself. */
const DEEPEST = 64

/** The check stops after this many problems: finding a million takes seconds. */
const MOST_PROBLEMS = 1000

/** How many names a message lists. */
const LISTED_NAMES = 12

type Properties = Readonly<Record<string, unknown>>

/** Validates documents with a JSON Schema and describes all problems with their location. */
export class SchemaCheck {
  readonly #nodes: SchemaNodes

  constructor(schema: JsonSchema) {
    this.#nodes = new SchemaNodes(schema)
  }

  /**
   * The problems of `value`, in the order of the document, about the first thousand; empty if it is valid. `part`:
   * location of the schema to use. Undefined properties count as absent.
   */
  problemsOf(value: unknown, part = '#'): RuleSetProblem[] {
    const walk = new Walk()
    walk.check(this.#nodes.at(part), value, '')
    if (walk.isFull) walk.problems.push(UNLISTED)
    return walk.problems
  }
}

/** The JSON pointer to a property or entry of what `path` points to. */
export function pointerTo(path: string, name: string | number): string {
  if (typeof name === 'number' || !/[~/]/.test(name)) return `${path}/${name}`
  return `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/** Represents the problems that are not listed. */
const UNLISTED: RuleSetProblem = {
  path: '',
  received: `more than ${MOST_PROBLEMS} problems`,
  expected: 'the listed ones to be mended first',
}

/** One validation. */
class Walk {
  readonly problems: RuleSetProblem[] = []
  #depth = 0
  /** The schema whose branches are being tried: it may define properties that they do not repeat. */
  #outer: SchemaNode | undefined = undefined

  check(node: SchemaNode, value: unknown, path: string): void {
    if (!node.admits(typeBits(value))) this.#add(path, describeValue(value), node.expected)
    else if (typeof value !== 'object' || value === null) this.#checkScalar(node, value, path)
    else this.#checkParts(node, value, path)
  }

  /** Whether the maximum number of problems is reached. */
  get isFull(): boolean {
    return this.problems.length >= MOST_PROBLEMS
  }

  #add(path: string, received: string, expected: string): void {
    this.problems.push({ path, received, expected })
  }

  #checkScalar(node: SchemaNode, value: unknown, path: string): void {
    if (isValidScalar(node, value)) return
    const words = node.schema.enum ?? []
    const meant = typeof value === 'string' ? nearestName(value, words) : undefined
    this.#add(path, describeValue(value), node.expected + question(meant))
  }

  #checkParts(node: SchemaNode, value: object, path: string): void {
    if (this.#depth >= DEEPEST) {
      this.#add(path, 'nested too deep', `at most ${DEEPEST} levels`)
      return
    }
    this.#depth++
    if (Array.isArray(value)) this.#checkItems(node, value, path)
    else {
      this.#checkProperties(node, value as Properties, path)
      if (node.branches.length > 0) this.#checkBranches(node, value as Properties, path)
    }
    this.#depth--
  }

  #checkItems({ schema, items, expected }: SchemaNode, values: readonly unknown[], path: string): void {
    const { minItems = 0, maxItems = Number.POSITIVE_INFINITY, uniqueItems = false } = schema
    if (values.length < minItems || values.length > maxItems) this.#add(path, describeValue(values), expected)
    const seen = uniqueItems ? new Set<unknown>() : undefined
    for (let index = 0; index < values.length && !this.isFull; index++) {
      const value = values[index]
      if (items !== undefined) this.check(items, value, `${path}/${index}`)
      if (seen?.has(value)) this.#add(`${path}/${index}`, describeValue(value), 'each only once')
      seen?.add(value)
    }
  }

  #checkProperties(node: SchemaNode, value: Properties, path: string): void {
    let count = 0
    for (const name of Object.keys(value)) {
      if (this.isFull) return
      const part = value[name]
      if (part !== undefined) count++
      const known = node.properties.get(name)
      if (known !== undefined) {
        if (part !== undefined) this.check(known, part, pointerTo(path, name))
      } else if (node.properties.has(name)) {
        if (part !== undefined) this.#add(pointerTo(path, name), describeValue(part), nothingBeside(node))
      } else this.#checkFurther(node, { name, part }, path)
    }
    if (count < (node.schema.minProperties ?? 0)) this.#add(path, describeValue(value), node.expected)
    this.#checkPresence(node, value, path)
  }

  /** An unknown property. */
  #checkFurther(node: SchemaNode, { name, part }: { name: string; part: unknown }, path: string): void {
    const { additional, names, properties } = node
    if (names !== undefined && !isValidScalar(names, name)) {
      this.#add(pointerTo(path, name), `named ${describeValue(name)}`, `${names.expected} as its name`)
    }
    if (additional === false) {
      const meant = nearestName(name, properties.keys())
      const expected = meant === undefined ? `only ${listed([...properties.keys()])}` : 'a known one'
      this.#add(pointerTo(path, name), 'an unknown property', expected + question(meant))
    } else if (additional !== true) this.check(additional, part, pointerTo(path, name))
  }

  #checkPresence({ schema, properties }: SchemaNode, value: Properties, path: string): void {
    for (const name of schema.required ?? []) {
      if (value[name] !== undefined) continue
      const part = properties.get(name) ?? this.#outer?.properties.get(name)
      this.#add(pointerTo(path, name), 'missing', part?.expected ?? 'it to be given')
    }
    if (schema.dependentRequired === undefined) return
    for (const [name, others] of Object.entries(schema.dependentRequired)) {
      if (value[name] === undefined) continue
      for (const other of others) {
        if (value[other] !== undefined) continue
        this.#add(pointerTo(path, other), 'missing', `${properties.get(other)?.expected}, beside "${name}"`)
      }
    }
  }

  /** One branch must be valid. If none is, reports the problems of the branch that was most likely meant. */
  #checkBranches(node: SchemaNode, value: Properties, path: string): void {
    const outer = this.#outer
    this.#outer = node
    const possible = node.branches.filter((branch) => agrees(branch, value))
    const meant = mostPresent(possible, value)
    if (meant === undefined) this.#checkUndecided(node, value, path)
    else if (node.properties.size > 0 && node.schema.title !== undefined && presenceOf(meant, value) === 0) {
      // It is unclear which one was meant: listing the choices is more helpful than the problems of one of them.
      this.#add(path, describeValue(value), node.expected)
    } else {
      const mark = this.problems.length
      this.check(meant, value, path)
      if (this.problems.length > mark && possible.some((branch) => branch !== meant && this.#isValid(branch, value))) {
        this.problems.length = mark
      }
    }
    this.#outer = outer
  }

  /** Reports nothing. */
  #isValid(node: SchemaNode, value: Properties): boolean {
    const mark = this.problems.length
    this.check(node, value, '')
    const isValid = this.problems.length === mark
    this.problems.length = mark
    return isValid
  }

  /**
   * A property of the value matches none of the branches. Reports that, and the problems that all branches share.
   */
  #checkUndecided({ branches, expected }: SchemaNode, value: Properties, path: string): void {
    const mark = this.problems.length
    for (const [name, words] of constantsOf(branches)) {
      const place = pointerTo(path, name)
      if (value[name] === undefined || words.includes(value[name]) || this.#isTold(place, path)) continue
      const meant = typeof value[name] === 'string' ? nearestName(value[name], words.map(String)) : undefined
      const known = words.map((word) => JSON.stringify(word)).join(', ')
      this.#add(place, describeValue(value[name]), `one of ${known}${question(meant)}`)
    }
    for (const [name, part] of sharedProperties(branches)) {
      if (value[name] !== undefined) this.check(part, value[name], pointerTo(path, name))
      else if (branches.every(({ schema }) => schema.required?.includes(name))) {
        this.#add(pointerTo(path, name), 'missing', part.expected)
      }
    }
    if (this.problems.length === mark && !this.#isTold('', path)) this.#add(path, describeValue(value), expected)
  }

  /**
   * Whether a problem at `place`, or anywhere if that is empty, was reported since the properties of `path` are
   * checked.
   */
  #isTold(place: string, path: string): boolean {
    for (let index = this.problems.length - 1; index >= 0; index--) {
      const told = this.problems[index]!.path
      if (!told.startsWith(`${path}/`)) return false
      if (place === '' || told === place) return true
    }
    return false
  }
}

/** The properties that discriminate the branches, with all their values. */
function constantsOf(branches: readonly SchemaNode[]): ReadonlyMap<string, readonly unknown[]> {
  const constants = new Map<string, unknown[]>()
  for (const branch of branches) {
    for (const [name, word] of branch.constants) constants.set(name, [...(constants.get(name) ?? []), word])
  }
  return constants
}

/** The properties that are the same in all branches. */
function sharedProperties([first, ...others]: readonly SchemaNode[]): readonly (readonly [string, SchemaNode])[] {
  return [...(first?.properties ?? [])].flatMap(([name, part]) =>
    part === undefined || others.some(({ properties }) => properties.get(name) !== part) ? [] : [[name, part] as const],
  )
}

function isValidScalar(node: SchemaNode, value: unknown): boolean {
  const { schema, pattern, branches } = node
  if (!node.admits(typeBits(value))) return false
  if (schema.const !== undefined && value !== schema.const) return false
  if (schema.enum !== undefined && !schema.enum.includes(value as string)) return false
  if (typeof value === 'number' && !isInRange(schema, value)) return false
  if (typeof value === 'string' && !(isLongEnough(schema, value) && pattern?.test(value) !== false)) return false
  return branches.length === 0 || branches.some((branch) => isValidScalar(branch, value))
}

function isInRange({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: JsonSchema, value: number): boolean {
  return (
    (minimum === undefined || value >= minimum) &&
    (maximum === undefined || value <= maximum) &&
    (exclusiveMinimum === undefined || value > exclusiveMinimum) &&
    (exclusiveMaximum === undefined || value < exclusiveMaximum)
  )
}

function isLongEnough({ minLength = 0, maxLength = Number.POSITIVE_INFINITY }: JsonSchema, value: string): boolean {
  // There are at most twice as many code units as code points, so these rarely need counting.
  if (value.length >= minLength * 2 && value.length <= maxLength) return true
  const length = codePoints(value)
  return length >= minLength && length <= maxLength
}

function codePoints(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}

/** Whether a value has the type and the discriminating properties of a branch. */
function agrees(branch: SchemaNode, value: Properties): boolean {
  if (!branch.admits(typeBits(value))) return false
  for (const [name, word] of branch.constants) {
    if (value[name] === undefined ? branch.schema.required?.includes(name) : value[name] !== word) return false
  }
  return true
}

/** The branch with the largest share of its required properties present; the first of several. */
function mostPresent(branches: readonly SchemaNode[], value: Properties): SchemaNode | undefined {
  let best: SchemaNode | undefined
  let most = -1
  for (const branch of branches) {
    const presence = presenceOf(branch, value)
    if (presence <= most) continue
    most = presence
    best = branch
  }
  return best
}

/** The share of its required properties that a value has, 0 to 1. */
function presenceOf({ schema: { required = [] } }: SchemaNode, value: Properties): number {
  if (required.length === 0) return 1
  return required.filter((name) => value[name] !== undefined).length / required.length
}

function nothingBeside({ schema }: SchemaNode): string {
  return `nothing beside ${(schema.required ?? []).map((name) => `"${name}"`).join(' and ')}`
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, LISTED_NAMES).join(', ')
  return names.length > LISTED_NAMES ? `${shown}, and ${names.length - LISTED_NAMES} more` : shown
}

function question(meant: string | undefined): string {
  return meant === undefined ? '' : `; did you mean "${meant}"?`
}
