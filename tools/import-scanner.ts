import { parseSync, Visitor } from 'oxc-parser'

/** One place in a source file that names another module. */
export interface ImportSite {
  /** What stands between the quotes; undefined where a dynamic import computes it. */
  readonly specifier: string | undefined
  /** Line of the specifier; the first line is 1. */
  readonly line: number
}

/** A syntax node that names a module: mostly a string. */
interface ModuleName {
  readonly type: string
  readonly start: number
  readonly value?: unknown
  readonly quasis?: readonly { readonly value: { readonly cooked: string | null } }[]
}

/**
 * Finds every import, re-export and dynamic import of a TypeScript or JavaScript source, in order of appearance.
 * Imports in types (`import('x').T`) count too. The ending of `path` says which language it is, such as `.tsx`.
 *
 * @throws Error with the first problem, when the source cannot be parsed
 */
export function scanImports(source: string, path = 'source.ts'): ImportSite[] {
  const { program, errors } = parseSync(path, source)
  if (errors.length > 0) throw new Error(`the source cannot be parsed: ${errors[0]!.codeframe ?? errors[0]!.message}`)
  const names: ModuleName[] = []
  const add = (node: { readonly source: ModuleName | null }): void => {
    if (node.source !== null) names.push(node.source)
  }
  new Visitor({
    ImportDeclaration: add,
    ExportNamedDeclaration: add,
    ExportAllDeclaration: add,
    ImportExpression: add,
    TSImportType: add,
  }).visit(program)
  return names
    .sort((one, other) => one.start - other.start)
    .map((name) => ({ specifier: specifierOf(name), line: source.slice(0, name.start).split('\n').length }))
}

/** A string literal, or a template without substitutions. */
function specifierOf({ type, value, quasis }: ModuleName): string | undefined {
  if (type === 'TemplateLiteral' && quasis?.length === 1) return quasis[0]!.value.cooked ?? undefined
  return type === 'Literal' && typeof value === 'string' ? value : undefined
}
