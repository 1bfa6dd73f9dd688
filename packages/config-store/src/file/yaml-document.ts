import { pointerTo } from '@sluice/core/internal'
import type { RuleSetProblem } from '@sluice/core/policy'
import type { Document, Node, Pair, YAMLError, YAMLMap } from 'yaml'
import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml'

type Found = Node | null | undefined

/** A YAML document and its line offsets. */
export interface YamlDocument {
  readonly document: Document.Parsed
  readonly lines: LineCounter
}

/**
 * Expanded nodes that the aliases of a file may produce: an upper bound, so that a small file cannot fill the memory.
 */
const MAX_ALIASES = 10_000

/** Parses YAML 1.2 with anchors, aliases and `<<`. Syntax errors are in the document: see {@link yamlProblems}. */
export function parseYaml(text: string): YamlDocument {
  const lines = new LineCounter()
  const document = parseDocument(text, {
    lineCounter: lines,
    merge: true,
    stringKeys: true,
    prettyErrors: false,
    resolveKnownTags: false,
    logLevel: 'error',
  })
  return { document, lines }
}

/** The content of a document as JavaScript values, or the problem that its aliases expand to too much. */
export function yamlValue({
  document,
}: YamlDocument): { readonly value: unknown } | { readonly problem: RuleSetProblem } {
  try {
    return { value: document.toJS({ maxAliasCount: MAX_ALIASES }) }
  } catch (error) {
    const received = `not to be read (${(error as Error).message})`
    return { problem: { path: '', received, expected: 'aliases that stand for less', line: 1 } }
  }
}

/**
 * The line of a JSON pointer, counted from 1: that of the key, or of the list item. For a missing value, the line of
 * the nearest existing parent.
 */
export function lineAt({ document, lines }: YamlDocument, pointer: string): number {
  let node: Found = document.contents
  let offset = node?.range?.[0] ?? 0
  for (const token of tokensOf(pointer)) {
    const target: Found = isAlias(node) ? node.resolve(document) : node
    const step = stepInto(document, target, token)
    if (step === undefined) break
    node = step.node
    offset = step.offset ?? offset
  }
  return lines.linePos(offset).line
}

/** Problems that make a document unusable: syntax errors, duplicate keys, tags, unresolved aliases. */
export function yamlProblems(lined: YamlDocument): readonly RuleSetProblem[] {
  const { document, lines } = lined
  const said = [...document.errors, ...document.warnings]
  // After a syntax error, later positions are meaningless.
  const fault = said.find(({ code }) => !UNDERSTOOD.has(code))
  if (fault !== undefined) {
    const received = `not YAML (${fault.message})`
    return [{ path: '', received, expected: 'YAML', line: lines.linePos(fault.pos[0]).line }]
  }
  const problems = [...said.map((error) => problemOf(lined, error)), ...unresolvedAliases(lined)]
  return problems.sort((one, other) => one.line! - other.line!)
}

const UNDERSTOOD: ReadonlySet<string> = new Set(['DUPLICATE_KEY', 'MULTIPLE_DOCS', 'TAG_RESOLVE_FAILED'])

function problemOf({ document, lines }: YamlDocument, { code, pos, message }: YAMLError): RuleSetProblem {
  const { line } = lines.linePos(pos[0])
  const path = pointerAt(document, pos[0])
  switch (code) {
    case 'DUPLICATE_KEY':
      return { path, received: 'given twice', expected: 'each key once', line }
    case 'MULTIPLE_DOCS':
      return { path: '', received: 'followed by a second document', expected: 'one document in a file', line }
    default:
      return { path, received: `marked by a tag (${message})`, expected: 'a value without a tag', line }
  }
}

function unresolvedAliases({ document, lines }: YamlDocument): readonly RuleSetProblem[] {
  const problems: RuleSetProblem[] = []
  const anchors = new Set<string>()
  visit(document, {
    Alias(_, { source, range }) {
      if (anchors.has(source)) return
      const offset = range?.[0] ?? 0
      const { line } = lines.linePos(offset)
      const received = `*${source}, which stands for nothing`
      problems.push({ path: pointerAt(document, offset), received, expected: `&${source} before it`, line })
    },
    Value(_, { anchor }) {
      if (anchor !== undefined) anchors.add(anchor)
    },
  })
  return problems
}

function tokensOf(pointer: string): readonly string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function stepInto(
  document: Document.Parsed,
  node: Found,
  token: string,
): { readonly node: Found; readonly offset: number | undefined } | undefined {
  if (isSeq(node)) {
    const item = node.items[Number(token)] as Found
    return item === undefined ? undefined : { node: item, offset: item?.range?.[0] }
  }
  const pair = isMap(node) ? pairOf(document, node, token) : undefined
  return pair === undefined ? undefined : { node: pair.value as Found, offset: (pair.key as Node).range?.[0] }
}

/** The pair with a key, including those merged by `<<`. */
function pairOf(document: Document.Parsed, map: YAMLMap, key: string): Pair | undefined {
  const own = map.items.find((pair) => isScalar(pair.key) && String(pair.key.value) === key)
  if (own !== undefined) return own
  for (const { key: name, value } of map.items) {
    if (!(isScalar(name) && String(name.value) === '<<')) continue
    for (const source of isSeq(value) ? value.items : [value]) {
      const merged = isAlias(source) ? source.resolve(document) : source
      const found = isMap(merged) ? pairOf(document, merged, key) : undefined
      if (found !== undefined) return found
    }
  }
  return undefined
}

/** The JSON pointer of the node at an offset. */
function pointerAt(document: Document.Parsed, offset: number): string {
  let pointer = ''
  for (let node: Found = document.contents; node !== undefined && node !== null; ) {
    const step = stepTowards(node, offset)
    if (step === undefined) break
    pointer = pointerTo(pointer, step.token)
    node = step.node
  }
  return pointer
}

function stepTowards(node: Node, offset: number): { readonly token: string; readonly node: Found } | undefined {
  if (isSeq(node)) {
    const index = node.items.findLastIndex((one) => startOf(one) <= offset)
    const item = node.items[index] as Found
    return offset <= endOf(item) ? { token: String(index), node: item } : undefined
  }
  if (!isMap(node)) return undefined
  const pair = node.items.findLast(({ key }) => startOf(key) <= offset)
  if (pair === undefined || !isScalar(pair.key)) return undefined
  const value = pair.value as Found
  return offset <= Math.max(endOf(pair.key), endOf(value)) ? { token: String(pair.key.value), node: value } : undefined
}

function startOf(node: unknown): number {
  return (node as Found)?.range?.[0] ?? Number.POSITIVE_INFINITY
}

function endOf(node: Found): number {
  return node?.range?.[1] ?? Number.NEGATIVE_INFINITY
}
