/** One place in a source file that names another module. */
export interface ImportSite {
  /** What stands between the quotes; undefined where a dynamic import computes it. */
  readonly specifier: string | undefined
  /** Line of the specifier, or of the keyword where there is none; the first line is 1. */
  readonly line: number
  /** How the module is named. A type position (`import('x').T`) counts as `dynamic`. */
  readonly kind: 'import' | 'export' | 'dynamic'
}

interface Token {
  readonly kind: 'word' | 'string' | 'mark'
  /** A word or a mark as written; the content of a string. */
  readonly text: string
  readonly line: number
}

/**
 * Finds every import, re-export and dynamic import of a TypeScript or JavaScript source, in order of appearance.
 * Comments, strings, templates and regular expressions that only look like imports are passed over.
 *
 * This reads tokens and does not parse: after a closing parenthesis a slash is taken for a division, so a regular
 * expression there is read as words, which can only matter if it spells an import statement.
 */
export function scanImports(source: string): ImportSite[] {
  const tokens = tokenize(source)
  const sites: ImportSite[] = []
  for (let index = 0; index < tokens.length; index++) {
    const site = siteAt(tokens, index)
    if (site !== undefined) sites.push(site)
  }
  return sites
}

function siteAt(tokens: readonly Token[], index: number): ImportSite | undefined {
  const token = tokens[index]!
  const isKeyword = token.kind === 'word' && (token.text === 'import' || token.text === 'export')
  if (!isKeyword || isMark(tokens[index - 1], '.') || isPropertyName(tokens, index)) return undefined
  const next = tokens[index + 1]
  if (next === undefined || isMark(next, '.')) return undefined
  if (token.text === 'export') return siteAfterFrom(tokens, index, 'export')
  if (next.kind === 'string') return { specifier: next.text, line: next.line, kind: 'import' }
  if (!isMark(next, '(')) return siteAfterFrom(tokens, index, 'import')
  const argument = tokens[index + 2]
  const isLiteral = argument?.kind === 'string' && [')', ','].some((mark) => isMark(tokens[index + 3], mark))
  return isLiteral
    ? { specifier: argument.text, line: argument.line, kind: 'dynamic' }
    : { specifier: undefined, line: token.line, kind: 'dynamic' }
}

/** `{ import: 1 }` and `{ import() {} }`-like keys are rare, but an exports map in a test has them. */
function isPropertyName(tokens: readonly Token[], index: number): boolean {
  return isMark(tokens[index + 1], ':')
}

/** Reads `import ... from 'x'` or `export ... from 'x'`: a clause has names, braces, commas and stars only. */
function siteAfterFrom(tokens: readonly Token[], start: number, kind: 'import' | 'export'): ImportSite | undefined {
  for (let index = start + 1; index < tokens.length; index++) {
    const token = tokens[index]!
    const next = tokens[index + 1]
    if (token.kind === 'word' && token.text === 'from' && next?.kind === 'string') {
      return { specifier: next.text, line: next.line, kind }
    }
    const isClause = token.kind !== 'mark' || ['{', '}', ',', '*'].includes(token.text)
    // `export const`, `export function`, ... : a declaration, whose body is scanned on its own.
    if (!isClause || DECLARATIONS.has(token.text)) return undefined
  }
  return undefined
}

const DECLARATIONS = new Set([
  ...['const', 'let', 'var', 'function', 'async', 'class', 'abstract', 'interface', 'enum', 'default', 'declare'],
  ...['namespace', 'import'],
])

function isMark(token: Token | undefined, text: string): boolean {
  return token?.kind === 'mark' && token.text === text
}

/** Words after which a slash begins a regular expression, not a division. */
const BEFORE_EXPRESSION = new Set([
  ...['return', 'typeof', 'case', 'in', 'of', 'delete', 'void', 'throw', 'new', 'else', 'do', 'yield', 'await'],
  ...['instanceof', 'default', 'export', 'import'],
])

const WORD = /[\p{ID_Start}$_#][\p{ID_Continue}$\u200c\u200d]*|\d[\w.]*/uy
const STRING = /'(?:\\[\s\S]|[^'\\\n])*'?|"(?:\\[\s\S]|[^"\\\n])*"?/y
const REGEX = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/[a-z]*/y
const BLANK = /(?:\s|\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|^#![^\n]*)+/y

type PieceKind = Token['kind'] | 'blank' | 'template'

/** A stretch of source: a token, or the blanks and comments between two. */
interface Piece {
  readonly kind: PieceKind
  readonly text: string
}

function tokenize(source: string): Token[] {
  const tokens: Token[] = []
  // Open braces inside each open `${`, innermost last: the `}` that closes none of them goes back to the template.
  const substitutions: number[] = []
  let position = 0
  let line = 1
  while (position < source.length) {
    const isSubstitutionEnd = source[position] === '}' && substitutions.at(-1) === 0
    const piece = isSubstitutionEnd ? templatePiece(source, position) : nextPiece(source, position, tokens.at(-1))
    if (isSubstitutionEnd) substitutions.pop()
    if (piece.kind === 'template' && piece.text.endsWith('${')) substitutions.push(0)
    else countBrace(substitutions, piece)
    const token = tokenOf(piece, line)
    if (token !== undefined) tokens.push(token)
    position += piece.text.length
    line += piece.text.split('\n').length - 1
  }
  return tokens
}

function nextPiece(source: string, position: number, previous: Token | undefined): Piece {
  if (source[position] === '`') return templatePiece(source, position)
  const patterns: [PieceKind, RegExp][] = [
    ['blank', BLANK],
    ['string', STRING],
    ['word', WORD],
  ]
  if (regexMayStart(previous)) patterns.push(['mark', REGEX])
  for (const [kind, pattern] of patterns) {
    pattern.lastIndex = position
    const text = pattern.exec(source)?.[0]
    if (text !== undefined) return { kind, text }
  }
  return { kind: 'mark', text: source[position]! }
}

function tokenOf({ kind, text }: Piece, line: number): Token | undefined {
  if (kind === 'blank') return undefined
  if (kind === 'string') return { kind, text: text.slice(1, -1), line }
  if (kind !== 'template') return { kind, text, line }
  // A template without substitutions is a string in all but its quotes.
  const isWhole = text.length > 1 && text.startsWith('`') && text.endsWith('`')
  return isWhole ? { kind: 'string', text: text.slice(1, -1), line } : { kind: 'mark', text: '`', line }
}

function countBrace(substitutions: number[], { kind, text }: Piece): void {
  const last = substitutions.length - 1
  if (last < 0 || kind !== 'mark') return
  if (text === '{') substitutions[last]! += 1
  if (text === '}') substitutions[last]! -= 1
}

/** From a backtick, or from the `}` that ends a substitution, to the next `${` or the closing backtick. */
function templatePiece(source: string, start: number): Piece {
  let end = start + 1
  while (end < source.length && source[end] !== '`' && !source.startsWith('${', end)) {
    end += source[end] === '\\' ? 2 : 1
  }
  return { kind: 'template', text: source.slice(start, source[end] === '`' ? end + 1 : end + 2) }
}

function regexMayStart(previous: Token | undefined): boolean {
  if (previous === undefined) return true
  if (previous.kind === 'string') return false
  if (previous.kind === 'word') return BEFORE_EXPRESSION.has(previous.text)
  return ![')', ']', '}', '`'].includes(previous.text)
}
