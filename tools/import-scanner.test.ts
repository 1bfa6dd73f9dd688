import { describe, expect, it } from 'vitest'
import { scanImports } from './import-scanner.ts'

function specifiers(source: string): (string | undefined)[] {
  return scanImports(source).map((site) => site.specifier)
}

describe('scanImports finds', () => {
  it.each([
    ['a default import', "import a from 'x'", 'import'],
    ['named imports', "import { a, b as c } from 'x'", 'import'],
    ['a namespace import', "import * as a from 'x'", 'import'],
    ['a mixed import', "import a, { type B } from 'x'", 'import'],
    ['a type import', "import type { A } from 'x'", 'import'],
    ['an import for its effect', "import 'x'", 'import'],
    ['an import with attributes', "import a from 'x' with { type: 'json' }", 'import'],
    ['an import named `from`', "import from from 'x'", 'import'],
    ['double quotes', 'import a from "x"', 'import'],
    ['no spaces', "import{a}from'x'", 'import'],
    ['a re-export', "export { a } from 'x'", 'export'],
    ['a type re-export', "export type { A } from 'x'", 'export'],
    ['a star re-export', "export * from 'x'", 'export'],
    ['a named star re-export', "export * as a from 'x'", 'export'],
    ['a dynamic import', "const a = await import('x')", 'dynamic'],
    ['a dynamic import with options', "import('x', { with: { type: 'json' } })", 'dynamic'],
    ['a dynamic import of a plain template', 'import(`x`)', 'dynamic'],
    ['an import in a type', "type A = import('x').A", 'dynamic'],
    ['an import after a declaration', "export const a = 1\nimport 'x'", 'import'],
    ['an import after a shebang', "#!/usr/bin/env node\nimport 'x'", 'import'],
    ['a dynamic import inside a template', `const a = \`b \${{ c: await import('x') }} d\``, 'dynamic'],
    ['an import after a regular expression with a quote', "const a = b.replace(/'/g, '')\nimport('x')", 'dynamic'],
    ['an import after a division', "const a = b / c; import('x'); const d = e / f", 'dynamic'],
  ])('%s', (_name, source, kind) => {
    expect(scanImports(source).map((site) => [site.specifier, site.kind])).toEqual([['x', kind]])
  })

  it('each import once, in order, with the line of its specifier', () => {
    const source = [
      "import { a } from './a.ts'",
      '/* a comment',
      '   of two lines */ import {',
      '  b,',
      "} from './b.ts'",
      '',
      'export function load() {',
      "  return import('./c.ts')",
      '}',
    ].join('\n')
    expect(scanImports(source)).toEqual([
      { specifier: './a.ts', line: 1, kind: 'import' },
      { specifier: './b.ts', line: 5, kind: 'import' },
      { specifier: './c.ts', line: 8, kind: 'dynamic' },
    ])
  })

  it('a dynamic import whose module is computed, without a specifier', () => {
    expect(scanImports('\nawait import(path)')).toEqual([{ specifier: undefined, line: 2, kind: 'dynamic' }])
    expect(specifiers('await import(`./${name}.ts`)')).toEqual([undefined])
    expect(specifiers("await import('./a' + b)")).toEqual([undefined])
  })
})

describe('scanImports passes over', () => {
  it.each([
    ['line comments', "// import a from 'x'"],
    ['block comments', "/* import a from 'x' */"],
    ['TSDoc examples', "/**\n * import a from 'x'\n */\nexport const a = 1"],
    ['strings', `const a = "import b from 'x'"`],
    ['strings with escapes', "const a = 'it\\'s import b from \"x\"'"],
    ['templates', "const a = `import b from 'x'`"],
    ['nested templates', `const a = \`\${\`import 'x'\`} import 'x'\``],
    ['regular expressions', "const a = /import 'x'/"],
    ['regular expressions with a class', "const a = /[/'] import 'x'/"],
    ['import.meta', "new URL('x', import.meta.url)"],
    ['methods called import', "loader.import('x')"],
    ['keys called import', "const a = { import: 'x' }"],
    ['exported declarations', "export const from = 'x'"],
    ['exported functions', "export function a(from = 'x') {}"],
    ['local export lists', "export { a }\nconst from = 'x'"],
    ['default exports', "export default 'x'"],
  ])('%s', (_name, source) => {
    expect(specifiers(source)).toEqual([])
  })
})
