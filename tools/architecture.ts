/** What the sources of one package may import, besides their own files. */
export interface ImportRow {
  /**
   * Packages of this workspace, by folder name, or `name/entry` for one that is imported only by that entry of its
   * exports; `any` for all of them.
   */
  readonly workspace: readonly string[] | 'any'
  /** Whether `node:` modules may be imported. */
  readonly node: boolean
  /**
   * Which packages from npm: none; those that package.json names as peers (the user brings them); those that
   * package.json names as dependencies or peers; or, in a package that is never published, its devDependencies too.
   */
  readonly npm: 'none' | 'peers' | 'dependencies' | 'any'
}

/**
 * Who may import whom. This is the direction of the whole project: core decides, stores remember, middleware and client
 * ask, apps serve. A new edge is a change of this table, and of its copy in ARCHITECTURE.md, in the same commit.
 * Packages that do not exist yet have their row already, so that the direction is decided before the code.
 */
export const importTable: Readonly<Record<string, ImportRow>> = {
  core: { workspace: [], node: false, npm: 'none' },
  runtime: { workspace: [], node: true, npm: 'none' },
  contract: { workspace: [], node: false, npm: 'none' },
  'store-redis': { workspace: ['core'], node: true, npm: 'peers' },
  'config-store': { workspace: ['core'], node: true, npm: 'dependencies' },
  middleware: { workspace: ['core', 'contract'], node: true, npm: 'peers' },
  client: { workspace: ['contract', 'core', 'runtime'], node: false, npm: 'none' },
  testing: { workspace: ['core', 'contract'], node: true, npm: 'peers' },
  sluice: {
    workspace: ['core', 'runtime', 'store-redis', 'config-store', 'middleware', 'client', 'testing'],
    node: false,
    npm: 'none',
  },
  service: {
    workspace: ['core', 'contract', 'runtime', 'store-redis', 'config-store', 'gateway'],
    node: true,
    npm: 'dependencies',
  },
  gateway: {
    workspace: ['core', 'contract', 'runtime', 'middleware'],
    node: true,
    npm: 'dependencies',
  },
  cli: {
    workspace: ['client', 'config-store/schema-version', 'contract', 'core', 'service/settings', 'service/rules-file'],
    node: true,
    npm: 'dependencies',
  },
  dashboard: { workspace: ['contract', 'core'], node: false, npm: 'dependencies' },
  harness: {
    workspace: ['client', 'contract', 'core', 'runtime', 'store-redis', 'testing/servers'],
    node: true,
    npm: 'dependencies',
  },
  bench: { workspace: 'any', node: true, npm: 'any' },
}

/** The package that an entry of {@link ImportRow.workspace} names. */
export function packageIdOf(entry: string): string {
  return entry.split('/')[0]!
}

/** What a test may import on top of its package's row. */
export const testImports: { readonly workspace: readonly string[]; readonly npm: readonly string[] } = {
  workspace: ['testing'],
  npm: ['vitest', 'fast-check'],
}

const NPM_WORDS: Readonly<Record<ImportRow['npm'], string | undefined>> = {
  none: undefined,
  peers: 'its peer dependencies',
  dependencies: 'its dependencies',
  any: 'anything from npm that it declares',
}

/** The lines between which ARCHITECTURE.md carries the table. */
export const tableMarkers: { readonly begin: string; readonly end: string } = {
  begin: '<!-- imports:begin -->',
  end: '<!-- imports:end -->',
}

/**
 * The table as ARCHITECTURE.md shows it, without the markers. A row whose package is not in `existing` says so, which
 * makes the arrival of a package show up in the document.
 */
export function renderImportTable(existing: ReadonlySet<string>): string {
  const rows = Object.entries(importTable).map(([id, row]) => {
    const name = existing.has(id) ? `\`${id}\`` : `\`${id}\` (to come)`
    const workspace = row.workspace === 'any' ? ['every package'] : row.workspace.map((target) => `\`${target}\``)
    const parts = [...workspace, row.node ? 'Node modules' : undefined, NPM_WORDS[row.npm]].filter(
      (part) => part !== undefined,
    )
    return `| ${name} | ${parts.length === 0 ? 'nothing' : parts.join(', ')} |`
  })
  const tests = [...testImports.workspace, ...testImports.npm].map((name) => `\`${name}\``).join(', ')
  return [
    '| package | may import |',
    '|---|---|',
    ...rows,
    `| tests (\`*.test.ts\`) of any package | also ${tests}, its devDependencies, Node modules |`,
  ].join('\n')
}
