import { describe, expect, it } from 'vitest'
import { scanImports } from './import-scanner.ts'

function specifiers(source: string): (string | undefined)[] {
  return scanImports(source).map((site) => site.specifier)
}

describe('scanImports finds', () => {
  it.each([
    ['a default import', "import a from 'x'"],
    ['named imports', "import { a, b as c } from 'x'"],
    ['a namespace import', "import * as a from 'x'"],
    ['a mixed import', "import a, { type B } from 'x'"],
    ['a type import', "import type { A } from 'x'"],
    ['an import for its effect', "import 'x'"],
    ['an import with attributes', "import a from 'x' with { type: 'json' }"],
    ['an import named `from`', "import from from 'x'"],
    ['double quotes', 'import a from "x"'],
    ['no spaces', "import{a}from'x'"],
    ['a re-export', "export { a } from 'x'"],
    ['a type re-export', "export type { A } from 'x'"],
    ['a star re-export', "export * from 'x'"],
    ['a named star re-export', "export * as a from 'x'"],
    ['a dynamic import', "const a = await import('x')"],
    ['a dynamic import with options', "import('x', { with: { type: 'json' } })"],
    ['a dynamic import of a plain template', 'import(`x`)'],
    ['an import in a type', "type A = import('x').A"],
    ['an import after a declaration', "export const a = 1\nimport 'x'"],
    ['an import after a shebang', "#!/usr/bin/env node\nimport 'x'"],
    ['a dynamic import inside a template', `const a = \`b \${{ c: await import('x') }} d\``],
    ['an import after a regular expression with a quote', "const a = b.replace(/'/g, '')\nimport('x')"],
    ['an import after a division', "const a = b / c; import('x'); const d = e / f"],
  ])('%s', (_name, source) => {
    expect(specifiers(source)).toEqual(['x'])
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
      { specifier: './a.ts', line: 1 },
      { specifier: './b.ts', line: 5 },
      { specifier: './c.ts', line: 8 },
    ])
  })

  it('a dynamic import whose module is computed, without a specifier', () => {
    expect(scanImports('\nawait import(path)')).toEqual([{ specifier: undefined, line: 2 }])
    expect(specifiers('await import(`./${name}.ts`)')).toEqual([undefined])
    expect(specifiers("await import('./a' + b)")).toEqual([undefined])
  })
})

describe('scanImports rejects', () => {
  it('a source with a syntax error', () => {
    expect(() => scanImports("import { from 'x'")).toThrow('the source cannot be parsed')
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
