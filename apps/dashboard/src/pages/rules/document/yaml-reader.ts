import type { Document, ErrorCode, Node } from 'yaml'
import { isMap, isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml'
import type { PlainData } from './yaml-writer.ts'

/** A text that is not YAML, or says something else than plain data. */
export class YamlError extends Error {
  /** Counted from 1. */
  readonly line: number

  constructor(message: string, { line, cause }: { readonly line: number; readonly cause?: unknown }) {
    super(message, { cause })
    this.name = 'YamlError'
    this.line = line
  }
}

/** What a text says. */
export interface YamlDocument {
  readonly value: PlainData
  /** The line on which each value begins, by its JSON pointer; counted from 1. */
  readonly lines: ReadonlyMap<string, number>
}

/** Aliases that are followed: a small text cannot fill the memory. */
const MAX_ALIASES = 1000

/** Reads YAML as the service reads a file of rules. Throws a {@link YamlError}. */
export function readYaml(text: string): YamlDocument {
  const counter = new LineCounter()
  const document = parseDocument(text, {
    lineCounter: counter,
    merge: true,
    stringKeys: true,
    prettyErrors: false,
    resolveKnownTags: false,
    logLevel: 'error',
  })
  const lineAt = (offset: number): number => counter.linePos(offset).line
  const [problem] = [...document.errors, ...document.warnings]
  if (problem !== undefined) {
    throw new YamlError(ADVICE[problem.code] ?? sentence(problem.message), { line: lineAt(problem.pos[0]) })
  }
  visit(document, {
    Alias(_, alias) {
      if (alias.resolve(document) !== undefined) return
      throw new YamlError(ALIAS_ADVICE, { line: lineAt(alias.range?.[0] ?? 0) })
    },
  })
  const lines = new Map<string, number>()
  noteLines(document.contents, '', (path, offset) => lines.set(path, lineAt(offset)))
  return { value: plainValue(document), lines }
}

function plainValue(document: Document.Parsed): PlainData {
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASES }) as PlainData
  } catch (cause) {
    throw new YamlError(sentence((cause as Error).message), { line: 1, cause })
  }
}

const ALIAS_ADVICE = 'A value that begins with * must be in quotes, such as "*".'

/** What to do about common mistakes, where the message of the parser speaks of its grammar. */
const ADVICE: Partial<Readonly<Record<ErrorCode, string>>> = {
  BAD_ALIAS: ALIAS_ADVICE,
  BLOCK_AS_IMPLICIT_KEY: 'Indent this line as those beside it, or put a value with a colon and a space in quotes.',
  BAD_INDENT: 'This line is indented differently from those it belongs to, or a bracket is never closed.',
  DUPLICATE_KEY: 'This name stands here twice.',
  MISSING_CHAR: 'A quote, a bracket, or the colon after a name is missing.',
  MULTIPLE_DOCS: 'Only one document can be read. Remove this line.',
  TAB_AS_INDENT: 'A tab cannot indent a line. Use spaces.',
}

/** Tells where the value of each JSON pointer begins: a property at its name, an item at its dash or itself. */
function noteLines(node: Node | null, path: string, note: (path: string, offset: number) => void): void {
  if (path === '' && node?.range) note(path, node.range[0])
  if (isSeq(node)) {
    for (const [index, item] of (node.items as Node[]).entries()) {
      if (item.range) note(`${path}/${index}`, item.range[0])
      noteLines(item, `${path}/${index}`, note)
    }
  }
  if (!isMap(node)) return
  for (const { key, value } of node.items) {
    if (!isScalar(key) || !key.range) continue
    const partPath = `${path}/${String(key.value).replaceAll('~', '~0').replaceAll('/', '~1')}`
    note(partPath, key.range[0])
    noteLines(value as Node | null, partPath, note)
  }
}

function sentence(message: string): string {
  const [first = ''] = message.split('\n')
  return `${first.replace(/[.:]$/, '')}.`
}
