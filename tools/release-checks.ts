import { HOW_TO_NAME_REPOSITORY } from './repository-url.ts'

/** What a release is checked against. */
export interface ReleaseState {
  /** Text of CHANGELOG.md. */
  readonly changelog: string
  /** Text of the page with notes for every version. */
  readonly upgradeNotes: string
  /** Version of every package.json, by path. */
  readonly versions: Readonly<Record<string, string | undefined>>
  /** What `git status --porcelain` prints. */
  readonly changedFiles: string
  readonly tags: readonly string[]
  /** The URL for the `repository` of the published package.json. */
  readonly repository: string | undefined
}

const HEADING = /^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d{2}-\d{2})$/m

/** The version to release: the newest one of CHANGELOG.md that has a date. Undefined if none has. */
export function changelogVersion(changelog: string): string | undefined {
  return HEADING.exec(changelog)?.[1]
}

/** Everything that stands in the way of a release, one sentence each, with what to do. */
export function releaseProblems(state: ReleaseState): string[] {
  const { changelog, versions, changedFiles, tags, repository, upgradeNotes } = state
  const version = changelogVersion(changelog)
  const problems: string[] = []
  if (changedFiles !== '') {
    const count = changedFiles.trim().split('\n').length
    problems.push(`${count} files differ from the last commit. Commit or remove them.`)
  }
  if (repository === undefined) {
    problems.push(`The repository is not known, which npm compares for provenance. ${HOW_TO_NAME_REPOSITORY}`)
  }
  if (version === undefined) {
    problems.push(
      'CHANGELOG.md has no heading such as "## [1.2.3] - 2026-12-31". Rename "## [Unreleased]" to the version ' +
        'and the date of the release.',
    )
    return problems
  }
  if (/^## \[Unreleased\]\n+(?!## |$)\S/m.test(changelog)) {
    problems.push(`CHANGELOG.md has changes under [Unreleased]. Move them to [${version}].`)
  }
  const others = Object.entries(versions).filter(([, found]) => found !== version)
  if (others.length > 0) {
    const list = others.map(([path, found]) => `${path} (${found})`).join(', ')
    problems.push(`CHANGELOG.md says ${version}, but these differ: ${list}. Run: npm run release -- --set-version.`)
  }
  if (tags.includes(`v${version}`)) problems.push(`The tag v${version} exists. Release a higher version.`)
  const higher = tags.find((tag) => /^v\d+\.\d+\.\d+$/.test(tag) && compareVersions(tag.slice(1), version) > 0)
  if (higher !== undefined) problems.push(`The tag ${higher} is higher than ${version}. Release a higher version.`)
  if (!upgradeNotes.includes(`\n### ${version}\n`)) {
    problems.push(`docs/guides/operate/upgrade.md has no section "### ${version}". Say what users have to change.`)
  }
  return problems
}

function compareVersions(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true })
}

/** The text of a package.json or lock file with the version of the workspace, and of what it depends on, replaced. */
export function withVersion(text: string, version: string): string {
  return text
    .replace(/^( {2}"version": )"[^"]+"/m, `$1"${version}"`)
    .replaceAll(/^( {4}"@sluice\/[\w-]+": )"[^"]+"/gm, `$1"${version}"`)
}
