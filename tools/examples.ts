import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { scanImports } from './import-scanner.ts'
import { repositoryFiles } from './repository-files.ts'
import type { Manifest } from './workspace.ts'
import { readJson } from './workspace.ts'

/** A folder below `examples`: a program of its own. */
export interface Example {
  readonly name: string
  /** Absolute path. */
  readonly folder: string
  readonly manifest: ExampleManifest
  readonly readme: string
  /** Packages that its files import, without what comes with Node, each once and sorted. */
  readonly imports: readonly string[]
}

/** The package.json of an example. */
export interface ExampleManifest extends Manifest {
  readonly scripts?: Readonly<Record<string, string>>
}

/** An answer over HTTP, as a README shows it or as it came. */
export interface HttpAnswer {
  /** Such as `200 OK`. */
  readonly status: string
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** The call that a README tells to make. */
export interface ReadmeCall {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

const HTTP_BLOCK = /^```http\n([\s\S]*?)^```$/gm
const TEXT_BLOCK = /^```text\n([\s\S]*?)^```$/m
const CURL = /^curl -i (http:\S+)(.*)$/m
const CURL_HEADER = /-H '([^:']+): ([^']*)'/g
const NODE_SCRIPT = /^node ([a-z-]+\.js)$/

/** Every program among the examples of the repository, sorted by name. */
export function readExamples(root: string): Example[] {
  const parent = join(root, 'examples')
  return readdirSync(parent, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(join(parent, entry.name, 'package.json')))
    .map(({ name }) => readExample(name, join(parent, name)))
    .sort((one, other) => (one.name < other.name ? -1 : 1))
}

function readExample(name: string, folder: string): Example {
  const sources = repositoryFiles(folder).filter((path) => path.endsWith('.js'))
  const imports = sources.flatMap((path) => importedPackages(readFileSync(join(folder, path), 'utf8')))
  return {
    name,
    folder,
    manifest: readJson<ExampleManifest>(join(folder, 'package.json')),
    readme: readFileSync(join(folder, 'README.md'), 'utf8'),
    imports: [...new Set(imports)].sort(),
  }
}

/** The packages from npm that a source imports: `hono` for `hono/cors`. */
export function importedPackages(source: string): string[] {
  return scanImports(source).flatMap(({ specifier = '' }) => {
    if (specifier.startsWith('.') || specifier.startsWith('node:')) return []
    const [scope = '', name] = specifier.split('/')
    return scope.startsWith('@') ? `${scope}/${name}` : scope
  })
}

/** The file that a script of an example runs; undefined when it is not `node <file>.js`. */
export function scriptFile({ manifest }: Example, script: string): string | undefined {
  return NODE_SCRIPT.exec(manifest.scripts?.[script] ?? '')?.[1]
}

/** The curl that a README tells to type; undefined when there is none. */
export function readmeCall(readme: string): ReadmeCall | undefined {
  const found = CURL.exec(readme)
  if (found === null) return undefined
  const headers = [...found[2]!.matchAll(CURL_HEADER)].map((match) => [match[1]!, match[2]!])
  return { path: new URL(found[1]!).pathname, headers: Object.fromEntries(headers) }
}

/** The answers that a README shows, in order. */
export function readmeAnswers(readme: string): HttpAnswer[] {
  return [...readme.matchAll(HTTP_BLOCK)].map((match) => {
    const [head = '', ...body] = match[1]!.split('\n\n')
    const [first = '', ...lines] = head.split('\n')
    const headers = lines.map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
    })
    return { status: first.replace(/^HTTP\/1\.1 /, ''), headers: Object.fromEntries(headers), body: body.join('\n\n') }
  })
}

/** What a README says that a program prints; undefined when it does not. */
export function readmeOutput(readme: string): string | undefined {
  return TEXT_BLOCK.exec(readme)?.[1]
}

/** What is different between the answer that a README shows and the one that came; empty when nothing is. */
export function differences(shown: HttpAnswer, came: HttpAnswer): string[] {
  const found = shown.status === came.status ? [] : [`status ${came.status} instead of ${shown.status}`]
  for (const [name, value] of Object.entries(shown.headers)) {
    const actual = came.headers[name]
    if (!isSameHeader(name, value, actual)) found.push(`${name} ${actual} instead of ${value}`)
  }
  if (!isSameBody(shown.body, came.body)) found.push(`body ${came.body} instead of ${shown.body}`)
  return found
}

/**
 * How long to wait depends on the instant: what is shown is the most there can be. A charset may be added to a type.
 */
function isSameHeader(name: string, shown: string, came: string | undefined): boolean {
  if (came === undefined) return false
  if (name === 'retry-after') return isWait(came) && Number(came) <= Number(shown)
  return came === shown || (name === 'content-type' && came.startsWith(`${shown};`))
}

function isWait(text: string): boolean {
  return /^[1-9]\d*$/.test(text)
}

/** A JSON object may have more fields than are shown; numbers in strings may be others. */
function isSameBody(shown: string, came: string): boolean {
  if (!shown.startsWith('{')) return withoutNumbers(shown) === withoutNumbers(came)
  const fields = JSON.parse(came) as Record<string, unknown>
  return Object.entries(JSON.parse(shown) as Record<string, unknown>).every(([name, value]) => {
    const actual = fields[name]
    if (name === 'retryAfter') return isWait(String(actual)) && Number(actual) <= Number(value)
    if (name === 'detail') return withoutNumbers(actual) === withoutNumbers(value)
    return JSON.stringify(actual) === JSON.stringify(value)
  })
}

function withoutNumbers(text: unknown): string {
  return String(text).trim().replace(/\d+/g, 'N')
}
