import type { PlainData } from './yaml-writer.ts'

/** A text that is not YAML, or YAML that this reader does not know. */
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

interface Line {
  readonly number: number
  readonly indent: number
  /** Without indentation and comment; never empty. */
  readonly text: string
}

const KEY = /^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s"'#,[\]{}&*!|>%@`?-][^#]*?|-[^\s#][^#]*?)\s*:(?:\s+|$)/

/**
 * Reads YAML as far as rule sets need it: nested lists and objects, `[ ]` and `{ }`, quoted and plain values,
 * comments. Anchors, tags, texts over several lines and several documents are rejected by name, never misread.
 * Throws a {@link YamlError}.
 */
export function readYaml(text: string): YamlDocument {
  const reader = new BlockReader(linesOf(text))
  return { value: reader.read(), lines: reader.lines }
}

function linesOf(text: string): readonly Line[] {
  const lines: Line[] = []
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const number = index + 1
    const content = withoutComment(raw).trimEnd()
    if (content.trim() === '') continue
    if (/^\s*\t/.test(content)) throw new YamlError('A tab cannot indent a line. Use spaces.', { line: number })
    if (/^(?:---|\.\.\.)(?:\s|$)/.test(content)) {
      if (content === '---' && lines.length === 0) continue
      throw new YamlError('Only one document can be read. Remove this line.', { line: number })
    }
    if (content.startsWith('%'))
      throw new YamlError('Directives are not supported. Remove this line.', { line: number })
    const indent = content.length - content.trimStart().length
    lines.push({ number, indent, text: content.trim() })
  }
  return lines
}

/** A comment begins with a # at the start or after a space, outside of quotes. */
function withoutComment(line: string): string {
  let quote = ''
  for (let index = 0; index < line.length; index++) {
    const char = line[index]!
    if (quote !== '') {
      if (char === '\\' && quote === '"') index++
      else if (char === quote) quote = ''
    } else if ((char === '"' || char === "'") && /(?:^|[\s,:[{-])$/.test(line.slice(0, index))) {
      quote = char
    } else if (char === '#' && (index === 0 || /\s/.test(line[index - 1]!))) {
      return line.slice(0, index)
    }
  }
  return line
}

/** Reads lines by their indentation. */
class BlockReader {
  readonly lines: Map<string, number> = new Map()
  readonly #source: Line[]
  #next = 0

  constructor(source: readonly Line[]) {
    this.#source = [...source]
  }

  read(): PlainData {
    const first = this.#source[0]
    if (first === undefined) return null
    const value = this.#block('', first.indent)
    const rest = this.#source[this.#next]
    if (rest !== undefined)
      throw new YamlError('This line is indented differently from those before it.', { line: rest.number })
    return value
  }

  #block(path: string, indent: number): PlainData {
    const line = this.#source[this.#next]!
    if (!this.lines.has(path)) this.lines.set(path, line.number)
    if (/^-(?:\s|$)/.test(line.text)) return this.#list(path, indent)
    if (KEY.test(line.text)) return this.#object(path, indent)
    return this.#inline(line.text, line)
  }

  #list(path: string, indent: number): PlainData {
    const items: PlainData[] = []
    for (let line = this.#at(indent); line !== undefined && /^-(?:\s|$)/.test(line.text); line = this.#at(indent)) {
      const rest = line.text.slice(1).trimStart()
      const itemPath = `${path}/${items.length}`
      this.lines.set(itemPath, line.number)
      if (rest === '') {
        items.push(this.#nested(itemPath, { line, least: indent + 1 }))
      } else {
        // What follows the dash is a block of its own, indented by where it begins.
        const inner = indent + (line.text.length - rest.length)
        this.#source[this.#next] = { number: line.number, indent: inner, text: rest }
        items.push(this.#block(itemPath, inner))
      }
    }
    return items
  }

  #object(path: string, indent: number): PlainData {
    const entries = new Map<string, PlainData>()
    for (let line = this.#at(indent); line !== undefined; line = this.#at(indent)) {
      const match = KEY.exec(line.text)
      if (match === null)
        throw new YamlError('Expected a name and a colon, such as "limit: 100".', { line: line.number })
      const name = String(new InlineReader(match[1]!, line.number).whole('key'))
      if (entries.has(name)) throw new YamlError(`"${name}" stands here twice.`, { line: line.number })
      const rest = line.text.slice(match[0].length)
      const partPath = `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
      this.lines.set(partPath, line.number)
      if (rest === '') {
        // The items of a list may stand below their name without indentation.
        const isListBelow = /^-(?:\s|$)/.test(this.#source[this.#next + 1]?.text ?? '')
        entries.set(name, this.#nested(partPath, { line, least: isListBelow ? indent : indent + 1 }))
      } else {
        entries.set(name, this.#inline(rest, line))
      }
    }
    return Object.fromEntries(entries)
  }

  /** The next line when it belongs to the block with this indentation. */
  #at(indent: number): Line | undefined {
    const line = this.#source[this.#next]
    if (line === undefined || line.indent < indent) return undefined
    if (line.indent === indent) return line
    throw new YamlError('This line is indented more than the line it belongs to.', { line: line.number })
  }

  /** The block below a line that says nothing itself; null when there is none. */
  #nested(path: string, { line, least }: { readonly line: Line; readonly least: number }): PlainData {
    this.#next++
    const below = this.#source[this.#next]
    if (below === undefined || below.indent < least) return null
    this.lines.set(path, line.number)
    return this.#block(path, below.indent)
  }

  /** A value on one line, or a list or object in brackets that goes on over several. */
  #inline(text: string, line: Line): PlainData {
    this.#next++
    let whole = text
    while (/^[[{]/.test(whole) && !isBalanced(whole)) {
      const more = this.#source[this.#next]
      if (more === undefined)
        throw new YamlError('The bracket that begins here is never closed.', { line: line.number })
      whole += ` ${more.text}`
      this.#next++
    }
    const value = new InlineReader(whole, line.number).whole('block')
    const below = this.#source[this.#next]
    if (below !== undefined && below.indent > line.indent && !KEY.test(below.text) && !below.text.startsWith('-')) {
      throw new YamlError('A value over several lines is not supported. Write it on one line, in quotes.', {
        line: below.number,
      })
    }
    return value
  }
}

function isBalanced(text: string): boolean {
  const bare = text.replace(/"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'/g, '')
  return (bare.match(/[[{]/g)?.length ?? 0) <= (bare.match(/[\]}]/g)?.length ?? 0)
}

const UNSUPPORTED: Readonly<Record<string, string>> = {
  '&': 'Anchors are not supported. Write the value out.',
  '*': 'A value that begins with * must be in quotes, such as "*".',
  '!': 'Tags are not supported. Leave them out.',
  '|': 'Texts over several lines are not supported. Write it on one line, in quotes.',
  '>': 'Texts over several lines are not supported. Write it on one line, in quotes.',
  '@': 'A value that begins with @ must be in quotes.',
  '`': 'A value that begins with ` must be in quotes.',
  '%': 'A value that begins with % must be in quotes.',
  '?': 'Names that are lists or objects are not supported.',
}

/** Where a value stands decides what ends it when it has no quotes. */
type Setting = 'block' | 'flow' | 'key'

/** Reads values on one line. */
class InlineReader {
  readonly #text: string
  readonly #line: number
  #index = 0

  constructor(text: string, line: number) {
    this.#text = text
    this.#line = line
  }

  whole(setting: Setting): PlainData {
    const value = this.#value(setting)
    this.#skipSpace()
    if (this.#index < this.#text.length)
      throw this.#error(`Unexpected ${this.#text.slice(this.#index, this.#index + 20)}`)
    return value
  }

  #value(setting: Setting): PlainData {
    this.#skipSpace()
    const char = this.#text[this.#index] ?? ''
    if (char === '[') return this.#flowList()
    if (char === '{') return this.#flowObject()
    if (char === '"') return this.#doubleQuoted()
    if (char === "'") return this.#singleQuoted()
    const problem = UNSUPPORTED[char]
    if (problem !== undefined) throw this.#error(problem)
    return this.#plain(setting)
  }

  #flowList(): PlainData {
    const items: PlainData[] = []
    this.#index++
    while (!this.#takes(']')) {
      items.push(this.#value('flow'))
      if (!this.#takes(',') && this.#peek() !== ']') throw this.#error('Expected "," or "]" in a list.')
    }
    return items
  }

  #flowObject(): PlainData {
    const entries: [string, PlainData][] = []
    this.#index++
    while (!this.#takes('}')) {
      const name = String(this.#value('flow'))
      if (!this.#takes(':')) throw this.#error(`Expected ":" after "${name}".`)
      entries.push([name, this.#peek() === ',' || this.#peek() === '}' ? null : this.#value('flow')])
      if (!this.#takes(',') && this.#peek() !== '}') throw this.#error('Expected "," or "}" in an object.')
    }
    return Object.fromEntries(entries)
  }

  #doubleQuoted(): string {
    const match = /^"(?:[^"\\]|\\.)*"/.exec(this.#text.slice(this.#index))
    if (match === null) throw this.#error('The quote that begins here is never closed.')
    this.#index += match[0].length
    try {
      return JSON.parse(match[0]) as string
    } catch (cause) {
      throw new YamlError('The quoted text has an escape that is not known. Use those of JSON.', {
        line: this.#line,
        cause,
      })
    }
  }

  #singleQuoted(): string {
    const match = /^'(?:[^']|'')*'/.exec(this.#text.slice(this.#index))
    if (match === null) throw this.#error('The quote that begins here is never closed.')
    this.#index += match[0].length
    return match[0].slice(1, -1).replaceAll("''", "'")
  }

  /** Without quotes. In brackets a comma or bracket ends it, and a colon before a space. */
  #plain(setting: Setting): PlainData {
    const rest = this.#text.slice(this.#index)
    const end = setting === 'flow' ? rest.search(/[,[\]{}]|:(?=[\s,[\]{}]|$)/) : -1
    const text = (end === -1 ? rest : rest.slice(0, end)).trimEnd()
    if (setting === 'block' && /:(?:\s|$)/.test(text)) {
      throw this.#error('A value with a colon and a space must be in quotes.')
    }
    this.#index += end === -1 ? rest.length : end
    return setting === 'key' ? text : plainValue(text)
  }

  #takes(char: string): boolean {
    if (this.#peek() !== char) return false
    this.#index++
    return true
  }

  #peek(): string {
    this.#skipSpace()
    if (this.#index >= this.#text.length) throw this.#error('The bracket that begins here is never closed.')
    return this.#text[this.#index]!
  }

  #skipSpace(): void {
    while (/\s/.test(this.#text[this.#index] ?? '')) this.#index++
  }

  #error(message: string): YamlError {
    return new YamlError(message, { line: this.#line })
  }
}

/** By the core schema of YAML 1.2. */
function plainValue(text: string): PlainData {
  if (/^(?:null|Null|NULL|~|)$/.test(text)) return null
  if (/^(?:true|True|TRUE)$/.test(text)) return true
  if (/^(?:false|False|FALSE)$/.test(text)) return false
  if (/^0o[0-7]+$/.test(text) || /^0x[0-9a-fA-F]+$/.test(text)) return Number(text)
  return /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/.test(text) ? Number(text) : text
}
