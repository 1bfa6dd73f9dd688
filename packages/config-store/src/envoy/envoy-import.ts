import { checkOptionNames, pointerTo } from '@sluice/core/internal'
import type {
  DescriptorDomain,
  DescriptorLimit,
  DescriptorNode,
  DescriptorUnit,
  RuleSetProblem,
} from '@sluice/core/policy'
import { RuleSetError } from '@sluice/core/policy'
import { isNothing, type YamlFields, YamlReader } from './yaml-reader.ts'

/** A configuration file of envoyproxy/ratelimit. */
export interface EnvoyFile {
  /** The file name in problems. */
  readonly name: string
  readonly text: string
}

/** Options of {@link importEnvoyYaml}. */
export interface EnvoyImportOptions {
  /** Whether several files may define parts of one domain. Default: false. */
  readonly mergeDomains?: boolean
}

const UNITS: readonly DescriptorUnit[] = ['second', 'minute', 'hour', 'day', 'week', 'month', 'year']

/** The protocol uses 32 bits. */
const LARGEST_PER_UNIT = 4_294_967_295

/** Maximum depth of a descriptor. */
const DEEPEST = 28

const ROOT_KEYS = ['domain', 'descriptors']
const DESCRIPTOR_KEYS = [
  'key',
  'value',
  'rate_limit',
  'descriptors',
  'shadow_mode',
  'quota_mode',
  'detailed_metric',
  'value_to_metric',
  'share_threshold',
  'metadata',
]
const LIMIT_KEYS = ['unit', 'requests_per_unit', 'unlimited', 'name', 'replaces']
const REPLACES_KEYS = ['name']

/** Where a misplaced key belongs. */
const HOMES: readonly [string, readonly string[]][] = [
  ['the descriptor', DESCRIPTOR_KEYS],
  ['rate_limit', LIMIT_KEYS],
  ['the top of the file', ROOT_KEYS],
]

/**
 * Converts files of envoyproxy/ratelimit to the `domains` of a rule set, in the order of the files. Throws a
 * `RuleSetError` with the problems of all files. The path of a problem is the file name, `#` and a JSON pointer.
 *
 * Stricter than the original, which ignores these mistakes: a key in a place where it has no effect, a limit without
 * `requests_per_unit`, a duplicate key, and a second document in a file.
 */
export function importEnvoyYaml(
  files: readonly EnvoyFile[],
  options: EnvoyImportOptions = {},
): { readonly domains: readonly DescriptorDomain[] } {
  checkOptionNames(options, { name: 'importEnvoyYaml', options: ['mergeDomains'], example: '{ mergeDomains: true }' })
  const domains = new Map<string, OpenDomain>()
  const problems: RuleSetProblem[] = []
  for (const { name, text } of files) {
    const reader = new YamlReader(name, text)
    if (reader.problems.length === 0) readFile(reader, domains, options.mergeDomains ?? false)
    for (const problem of reader.problems) problems.push(problem)
  }
  if (problems.length > 0)
    throw new RuleSetError(problems, files.length === 1 ? files[0]!.name : `a set of ${files.length} files`)
  return { domains: [...domains].map(([domain, { descriptors }]) => ({ domain, descriptors })) }
}

/** A domain under construction. */
interface OpenDomain {
  readonly descriptors: DescriptorNode[]
  /** Keys and values at its top level. */
  readonly seen: Set<string>
}

function readFile(reader: YamlReader, domains: Map<string, OpenDomain>, mergeDomains: boolean): void {
  const fields = known(reader, '', { value: reader.root ?? undefined, keys: ROOT_KEYS })
  if (fields === undefined) return
  const domain = reader.fullText(fields['domain'], '/domain', 'the name of the domain')
  const before = domains.get(domain)
  if (before !== undefined && domain !== '' && !mergeDomains)
    reader.report('/domain', `${JSON.stringify(domain)} once more`, 'each domain in one file only, or mergeDomains')
  const open = before ?? { descriptors: [], seen: new Set<string>() }
  domains.set(domain, open)
  for (const node of new LevelReader(reader).read(fields['descriptors'], '', open.seen)) open.descriptors.push(node)
}

/** A mapping with known keys; undefined for anything else. */
function known(
  reader: YamlReader,
  pointer: string,
  { value, keys }: { readonly value: unknown; readonly keys: readonly string[] },
): YamlFields | undefined {
  const fields = reader.fields(value, pointer, `a mapping of ${keys.join(', ')}`)
  if (fields === undefined) return undefined
  for (const key of Object.keys(fields)) {
    if (keys.includes(key)) continue
    const [home] = HOMES.find(([, homeKeys]) => homeKeys.includes(key)) ?? []
    const hint = home === undefined ? '' : `; it belongs to ${home}`
    reader.report(pointerTo(pointer, key), 'not known here', `only ${keys.join(', ')}${hint}`)
  }
  return fields
}

/** Reads the levels of a descriptor tree. */
class LevelReader {
  readonly #reader: YamlReader
  /** The enclosing lists: with anchors, a list can contain itself. */
  readonly #above: unknown[] = []

  constructor(reader: YamlReader) {
    this.#reader = reader
  }

  /** The nodes in `descriptors` of `parent`. `seen`: keys and values already used at this level. */
  read(value: unknown, parent: string, seen: Set<string> = new Set()): DescriptorNode[] {
    const pointer = `${parent}/descriptors`
    const items = this.#reader.list(value, pointer, 'a list of descriptors')
    if (this.#above.includes(items)) {
      this.#reader.report(pointer, 'a list that contains itself', 'a list that ends')
      return []
    }
    if (this.#above.length >= DEEPEST && items.length > 0) {
      this.#reader.report(pointer, 'nested too deep', `at most ${DEEPEST} levels`)
      return []
    }
    this.#above.push(items)
    const nodes = items.map((item, index) => this.#readNode(item, `${pointer}/${index}`, seen))
    this.#above.pop()
    return nodes.filter((node) => node !== undefined)
  }

  #readNode(value: unknown, pointer: string, seen: Set<string>): DescriptorNode | undefined {
    const reader = this.#reader
    const fields = known(reader, pointer, { value, keys: DESCRIPTOR_KEYS })
    if (fields === undefined) return undefined
    const key = reader.fullText(fields['key'], `${pointer}/key`, 'the key of an entry')
    const text = reader.text(fields['value'], `${pointer}/value`)
    if (key !== '' && isSecond(seen, JSON.stringify([key, text])))
      reader.report(pointer, `a second ${nameOf(key, text)}`, 'each key and value once at a level')
    const flag = (name: string): boolean => reader.flag(fields[name], `${pointer}/${name}`)
    const shareThreshold = flag('share_threshold')
    if (shareThreshold && !text.includes('*'))
      reader.report(
        `${pointer}/share_threshold`,
        'beside a value without *',
        'a value with *, whose matches share a counter',
      )
    const limit = readLimit(reader, fields['rate_limit'], `${pointer}/rate_limit`)
    const descriptors = this.read(fields['descriptors'], pointer)
    const metadata = reader.data(fields['metadata'], `${pointer}/metadata`)
    return {
      key,
      ...(text === '' ? {} : { value: text }),
      ...(limit === undefined ? {} : { limit }),
      ...(descriptors.length === 0 ? {} : { descriptors }),
      ...(flag('shadow_mode') ? { shadow: true } : {}),
      ...(flag('quota_mode') ? { quota: true } : {}),
      ...(shareThreshold ? { shareThreshold } : {}),
      ...(flag('detailed_metric') ? { detailedMetric: true } : {}),
      ...(flag('value_to_metric') ? { valueToMetric: true } : {}),
      ...(metadata === undefined ? {} : { metadata }),
    }
  }
}

function readLimit(reader: YamlReader, value: unknown, pointer: string): DescriptorLimit | undefined {
  if (isNothing(value)) return undefined
  const fields = known(reader, pointer, { value, keys: LIMIT_KEYS })
  if (fields === undefined) return undefined
  const name = reader.text(fields['name'], `${pointer}/name`)
  const replaces = readReplaces(reader, fields['replaces'], { pointer: `${pointer}/replaces`, ownName: name })
  const more = { ...(name === '' ? {} : { name }), ...(replaces.length === 0 ? {} : { replaces }) }
  if (reader.flag(fields['unlimited'], `${pointer}/unlimited`)) {
    if (!isNothing(fields['unit'])) reader.report(`${pointer}/unit`, 'beside unlimited', 'one of them')
    if (!isNothing(fields['requests_per_unit']))
      reader.whole(fields['requests_per_unit'], `${pointer}/requests_per_unit`, LARGEST_PER_UNIT)
    return { unlimited: true, ...more }
  }
  const unit = readUnit(reader, fields['unit'], `${pointer}/unit`)
  const requestsPerUnit = reader.whole(fields['requests_per_unit'], `${pointer}/requests_per_unit`, LARGEST_PER_UNIT)
  if (unit === undefined || requestsPerUnit === undefined) return undefined
  return { unit, requestsPerUnit, ...more }
}

function readUnit(reader: YamlReader, value: unknown, pointer: string): DescriptorUnit | undefined {
  const expected = `one of ${UNITS.join(', ')}`
  const text = reader.fullText(value, pointer, expected)
  const unit = UNITS.find((each) => each === text.toLowerCase())
  if (unit === undefined && text !== '') reader.report(pointer, JSON.stringify(text), expected)
  return unit
}

function readReplaces(
  reader: YamlReader,
  value: unknown,
  { pointer, ownName }: { readonly pointer: string; readonly ownName: string },
): readonly string[] {
  const names: string[] = []
  for (const [index, item] of reader.list(value, pointer, 'a list of { name }').entries()) {
    const place = `${pointer}/${index}`
    const fields = known(reader, place, { value: item, keys: REPLACES_KEYS })
    if (fields === undefined) continue
    const name = reader.fullText(fields['name'], `${place}/name`, 'the name of another limit')
    if (name !== '' && name === ownName)
      reader.report(`${place}/name`, 'the name of this limit', 'the name of another limit')
    names.push(name)
  }
  return names
}

/** Whether `id` was already in the set. Adds it. */
function isSecond(seen: Set<string>, id: string): boolean {
  const before = seen.size
  return seen.add(id).size === before
}

function nameOf(key: string, value: string): string {
  return value === ''
    ? `${JSON.stringify(key)} without a value`
    : `${JSON.stringify(key)} with ${JSON.stringify(value)}`
}
