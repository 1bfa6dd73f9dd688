import { ToolError } from './tool-error.ts'
import type { Manifest, WorkspacePackage } from './workspace.ts'

/** What an entry is, by the conditions that it is looked for with. The first that matches wins. */
type Conditions = string | { readonly [condition: string]: Conditions }

/** The package.json of the package to be published. */
export interface StagedManifest extends Omit<Manifest, 'exports'> {
  readonly exports: Readonly<Record<string, Conditions>>
  readonly keywords: readonly string[]
  readonly bin: Readonly<Record<string, string>>
  /** For TypeScript that does not read `exports`, and for tools that are as old. */
  readonly main: string
  readonly types: string
  readonly typesVersions: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>
  readonly publishConfig: { readonly access: 'public'; readonly provenance: true }
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional: true }>>
}

const KEYWORDS = [
  'rate limit',
  'rate limiter',
  'throttle',
  'quota',
  'gcra',
  'token bucket',
  'redis',
  'express',
  'fastify',
]

/** What the exports of the package offer besides code. */
const DATA_EXPORTS = {
  './sluice.schema.json': './sluice.schema.json',
  './openapi.json': './openapi.json',
  './package.json': './package.json',
}

/** Entries that need a module of npm that exists as an ES module only. */
const WITHOUT_COMMONJS = ['./testing']

/** An entry of the package that is also there as a CommonJS module. */
export interface CommonJsEntry {
  /** Such as `./express`. */
  readonly subpath: string
  /** Paths in the package, such as `./dist/express.js`. */
  readonly module: string
  readonly types: string
  /** Such as `./dist/cjs/express.cjs`. */
  readonly commonJs: string
  readonly commonJsTypes: string
}

/**
 * The entries that are also CommonJS modules, for what cannot load ES modules by `require`: Jest, and TypeScript that
 * resolves the `node16` way. Node never loads them, so a program has one copy of everything.
 */
export function commonJsEntries(exports: NonNullable<Manifest['exports']>): CommonJsEntry[] {
  return Object.entries(exports).flatMap(([subpath, target]) => {
    if (typeof target === 'string' || WITHOUT_COMMONJS.includes(subpath)) return []
    const { types = '', default: module = '' } = target
    const stem = module.replace(/^\.\/dist\//, './dist/cjs/').replace(/\.js$/, '')
    return [{ subpath, module, types, commonJs: `${stem}.cjs`, commonJsTypes: `${stem}.d.cts` }]
  })
}

/**
 * The package.json of a package that holds `packages` inside: what they need from npm is what it needs. Peers are
 * optional, since each serves one entry: users of Express have it, and others do not need it.
 *
 * @throws ToolError `RANGES_DIFFER` when two of them ask for different versions of one package
 */
export function stagedManifest(facade: WorkspacePackage, packages: readonly WorkspacePackage[]): StagedManifest {
  const { name = '', version = '', description = '', license = '', engines = {} } = facade.manifest
  const peers = merged(packages, 'peerDependencies')
  const entries = facade.manifest.exports ?? {}
  const commonJs = commonJsEntries(entries)
  return {
    name,
    version,
    description,
    license,
    keywords: KEYWORDS,
    type: 'module',
    sideEffects: false,
    engines,
    bin: { sluice: 'bin/sluice.mjs' },
    main: './dist/cjs/index.cjs',
    types: './dist/index.d.ts',
    typesVersions: { '*': Object.fromEntries(commonJs.map(({ subpath, types }) => [subpath.slice(2), [types]])) },
    files: [
      ...['bin', 'dist', 'docs', 'examples', 'llms.txt', 'openapi.json', 'sluice.schema.json'],
      ...['CHANGELOG.md', 'THIRD-PARTY-LICENSES.md'],
    ],
    exports: { ...publishedExports(entries, commonJs), ...DATA_EXPORTS },
    publishConfig: { access: 'public', provenance: true },
    dependencies: merged(packages, 'dependencies'),
    peerDependencies: peers,
    peerDependenciesMeta: Object.fromEntries(Object.keys(peers).map((peer) => [peer, { optional: true }])),
  }
}

function publishedExports(
  exports: NonNullable<Manifest['exports']>,
  commonJs: readonly CommonJsEntry[],
): Record<string, Conditions> {
  const modules = Object.entries(exports).map(([subpath, target]) => {
    if (typeof target === 'string') return [subpath, target] as const
    const { source: _source, ...published } = target
    return [subpath, published] as const
  })
  const both = commonJs.map(({ subpath, types, module, commonJs: required, commonJsTypes }) => {
    const published = { types, default: module }
    // Node has the first condition for `import` and `require` alike.
    const conditions = { 'module-sync': published, require: { types: commonJsTypes, default: required }, ...published }
    return [subpath, conditions] as const
  })
  return Object.fromEntries([...modules, ...both])
}

/** What comes from npm; every package of the workspace that is needed is inside already. */
function merged(
  packages: readonly WorkspacePackage[],
  field: 'dependencies' | 'peerDependencies',
): Record<string, string> {
  const ranges = new Map<string, string>()
  for (const { folder, manifest } of packages) {
    for (const [name, range] of Object.entries(manifest[field] ?? {})) {
      if (name.startsWith('@sluice/')) continue
      if ((ranges.get(name) ?? range) !== range) {
        throw new ToolError(
          'RANGES_DIFFER',
          `${folder} asks for ${name} ${range}, another package inside the same one for ${ranges.get(name)}. Give ` +
            'both the same range.',
        )
      }
      ranges.set(name, range)
    }
  }
  return Object.fromEntries([...ranges].sort(([a], [b]) => (a < b ? -1 : 1)))
}
