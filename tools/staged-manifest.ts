import { ToolError } from './tool-error.ts'
import type { Manifest, WorkspacePackage } from './workspace.ts'

/** The package.json of the package to be published. */
export interface StagedManifest extends Manifest {
  readonly keywords: readonly string[]
  readonly exports: Readonly<Record<string, Readonly<Record<string, string>> | string>>
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
const DATA_EXPORTS = { './sluice.schema.json': './sluice.schema.json', './package.json': './package.json' }

/**
 * The package.json of a package that holds `packages` inside: what they need from npm is what it needs. Peers are
 * optional, since each serves one entry: users of Express have it, and others do not need it.
 *
 * @throws ToolError `RANGES_DIFFER` when two of them ask for different versions of one package
 */
export function stagedManifest(facade: WorkspacePackage, packages: readonly WorkspacePackage[]): StagedManifest {
  const { name = '', version = '', description = '', license = '', engines = {} } = facade.manifest
  const peers = merged(packages, 'peerDependencies')
  return {
    name,
    version,
    description,
    license,
    keywords: KEYWORDS,
    type: 'module',
    sideEffects: false,
    engines,
    files: ['dist', 'docs', 'sluice.schema.json', 'CHANGELOG.md'],
    exports: { ...withoutSources(facade.manifest.exports ?? {}), ...DATA_EXPORTS },
    dependencies: merged(packages, 'dependencies'),
    peerDependencies: peers,
    peerDependenciesMeta: Object.fromEntries(Object.keys(peers).map((peer) => [peer, { optional: true }])),
  }
}

function withoutSources(exports: NonNullable<Manifest['exports']>): StagedManifest['exports'] {
  return Object.fromEntries(
    Object.entries(exports).map(([subpath, target]) => {
      if (typeof target === 'string') return [subpath, target]
      const { source: _source, ...published } = target
      return [subpath, published]
    }),
  )
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
