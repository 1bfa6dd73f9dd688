// What the documents name must exist: settings, commands, operations, metrics, codes, entries of the package. And the
// documents keep to the rules of CONTRIBUTING.md about size and language.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { SETTING_TABLE } from '../apps/service/src/settings/setting-table.ts'
import { repositoryFiles } from './repository-files.ts'
import { repositoryRoot } from './workspace.ts'

const LONGEST_LINE = 120
const LONGEST_GUIDE = 200

const files = repositoryFiles(repositoryRoot)

/** Documents that users and contributors read first. Decision records tell history, so they may name what is gone. */
const DOCUMENT_PATHS = [
  /^(?:README|CHANGELOG|CONTRIBUTING|SECURITY)\.md$/,
  /^docs\/(?:README|guides\/.+|benchmarks)\.md$/,
  /^docs\/reference\/(?:middleware|settings|metrics)\.md$/,
  /^(?:packages|apps)\/\w[\w-]*\/README\.md$/,
]
const DOCUMENTS = files.filter((path) => DOCUMENT_PATHS.some((pattern) => pattern.test(path)))

function read(path: string): string {
  return readFileSync(join(repositoryRoot, path), 'utf8')
}

/** The text without fenced code. Lines stay, so that line numbers hold. */
function withoutBlocks(markdown: string): string {
  return markdown.replaceAll(/^```[\s\S]*?^```$/gm, (block) => block.replaceAll(/[^\n]/g, ''))
}

/** What the pattern finds in inline code of a document, each as `path: name`, unless `isKnown`. */
function unknownNames(path: string, pattern: RegExp, isKnown: (name: string) => boolean): string[] {
  const spans = withoutBlocks(read(path)).matchAll(/`([^`\n]+)`/g)
  const names = [...spans].flatMap(([, span = '']) => [...span.matchAll(pattern)].map((match) => match[1] ?? match[0]))
  return [...new Set(names)].filter((name) => !isKnown(name)).map((name) => `${path}: ${name}`)
}

const sources = files
  .filter((path) => /^(?:(?:packages|apps)\/.+\/src|tools)\/.+\.ts$/.test(path) && !/\.test\b/.test(path))
  .map(read)
  .join('\n')

const headings = (path: string): Set<string> =>
  new Set([...read(path).matchAll(/^#{2,3} `(.+)`$/gm)].map(([, heading]) => heading!))

describe('the documents name only what exists:', () => {
  it.each(DOCUMENTS.map((path) => [path]))('%s: codes and environment variables', (path) => {
    const variables = Object.values(SETTING_TABLE).map(({ variable }) => variable)
    const known = new Set([...(sources.match(/\bSLUICE_[A-Z0-9_]+\b/g) ?? []), ...variables])
    expect(unknownNames(path, /\bSLUICE_[A-Z0-9_]*[A-Z0-9]\b(?!_)/g, (name) => known.has(name))).toEqual([])
  })

  it.each(DOCUMENTS.map((path) => [path]))('%s: metrics', (path) => {
    const known = new Set(read('docs/reference/metrics.md').match(/(?<=`)[a-z_]+(?=`)/g))
    expect(unknownNames(path, /\b(?:ratelimit|sluice|nodejs|process)_[a-z_]+\b/g, (name) => known.has(name))).toEqual(
      [],
    )
  })

  it.each(DOCUMENTS.map((path) => [path]))('%s: operations of the service', (path) => {
    const known = headings('docs/reference/http-api.md')
    const pattern = /\b((?:GET|POST|PUT|DELETE) \/(?:admin|internal|v1|json|readyz|livez|metrics|openapi)[^\s`?]*)/g
    expect(unknownNames(path, pattern, (name) => known.has(name))).toEqual([])
  })

  it.each(DOCUMENTS.map((path) => [path]))('%s: commands', (path) => {
    const known = [...headings('docs/reference/cli.md')].map((heading) => heading.replace(/^sluice /, ''))
    const isKnown = (name: string): boolean =>
      known.some((command) => name === command || name.startsWith(`${command} `) || command.startsWith(`${name} `))
    expect(unknownNames(path, /^(?:npx )?sluice ((?!\.\.\.)[a-z][a-z-]*(?: [a-z][a-z-]*)?)/g, isKnown)).toEqual([])
  })

  it.each(DOCUMENTS.map((path) => [path]))('%s: flags', (path) => {
    const listed = [read('docs/reference/settings.md'), read('docs/reference/cli.md'), sources].join('\n')
    const known = new Set(listed.match(/--[a-z][a-z-]+/g))
    const isKnown = (name: string): boolean => known.has(name) || known.has(name.replace(/^--no-/, '--'))
    // Flags of a sentence that starts with another program are not ours.
    expect(unknownNames(path, /^(?!curl|openssl)(?:.*\s)?(--[a-z][a-z-]+)/g, isKnown)).toEqual([])
  })

  it.each(DOCUMENTS.map((path) => [path]))('%s: entries of the package', (path) => {
    const { exports } = JSON.parse(read('packages/sluice/package.json')) as { exports: Record<string, unknown> }
    const isKnown = (name: string): boolean => name.replace(/^sluice/, '.') in exports
    expect(unknownNames(path, /^(sluice\/[a-z][a-z/-]*[a-z])$/g, isKnown)).toEqual([])
  })
})

describe('the guides to operation', () => {
  const troubleshooting = read('docs/guides/operate/troubleshooting.md')

  async function catalogue(path: string, name: string): Promise<Readonly<Record<string, string>>> {
    const module = (await import(join(repositoryRoot, path))) as Record<string, Readonly<Record<string, string>>>
    return module[name]!
  }

  it('have every reason for which the service is degraded or not ready, and no other', async () => {
    const reasons = await catalogue('packages/contract/src/index.ts', 'READINESS_REASONS')
    const rows = [...read('docs/guides/operate/health.md').matchAll(/^\| `([\w-]+)` \| (.+?) \| /gm)]
    expect(Object.fromEntries(rows.map(([, code, meaning]) => [code, meaning]))).toEqual(reasons)
    const [, section = ''] = troubleshooting.split('## The service is degraded or not ready\n')
    const fixes = [...section.split('\n## ')[0]!.matchAll(/^\| `([\w-]+)` \|/gm)].map(([, code]) => code)
    expect(fixes.toSorted()).toEqual(Object.keys(reasons).toSorted())
  })

  it('say what to do about every error with which the start of the service fails', async () => {
    const codes = Object.keys(await catalogue('apps/service/src/service-error.ts', 'SERVICE_ERRORS'))
    expect(codes.length).toBeGreaterThan(5)
    expect(codes.filter((code) => !troubleshooting.includes(`| \`${code}\` |`))).toEqual([])
  })

  it('say what to do about every warning of the middleware', async () => {
    const codes = Object.keys(await catalogue('packages/middleware/src/misuse/misuse-warning.ts', 'MISUSES'))
    expect(codes.length).toBeGreaterThan(5)
    expect(codes.filter((code) => !troubleshooting.includes(code))).toEqual([])
  })
})

describe('the size of documents:', () => {
  it.each(files.filter((path) => path.startsWith('docs/guides/')).map((path) => [path]))(
    `%s has at most ${LONGEST_GUIDE} lines`,
    (path) => {
      expect(read(path).split('\n').length).toBeLessThanOrEqual(LONGEST_GUIDE)
    },
  )

  it('the README has 600 to 700 words', () => {
    const words = read('README.md')
      .split(/\s+/)
      .filter((word) => /\w/.test(word))
    expect(words.length).toBeGreaterThanOrEqual(600)
    expect(words.length).toBeLessThanOrEqual(700)
  })

  it('README.md compares by ratios only', () => {
    const [, table = ''] = read('README.md').split('| compared with | measured | ratio |\n|---|---|---|\n')
    const rows = table.slice(0, table.indexOf('\n\n')).split('\n')
    expect(rows.map((row) => row.split('|')[3]?.trim()).filter((cell) => !/^\d+\.\d$/.test(cell ?? ''))).toEqual([])
  })

  // A row of a table cannot be wrapped.
  it.each(DOCUMENTS.map((path) => [path]))(`%s has lines of at most ${LONGEST_LINE} columns`, (path) => {
    const lines = read(path).split('\n')
    const long = lines.flatMap((line, index) =>
      line.length > LONGEST_LINE && !line.startsWith('|') ? [`${path}:${index + 1}`] : [],
    )
    expect(long).toEqual([])
  })
})

describe('the language of documents:', () => {
  const AVOIDED = /\b(?:nobody|whoever|is told|are told|when left out|refusals?|(?:is|are|was|were|be) refused)\b/i

  // Generated pages repeat help texts of the service. Names of files are no words.
  it.each(DOCUMENTS.filter((path) => !path.startsWith('docs/reference/')).map((path) => [path]))('%s', (path) => {
    const lines = withoutBlocks(read(path)).split('\n')
    expect(
      lines.flatMap((line, index) =>
        AVOIDED.test(line.replaceAll(/\S+\.ts\b/g, '')) ? [`${path}:${index + 1} ${line}`] : [],
      ),
    ).toEqual([])
  })
})
