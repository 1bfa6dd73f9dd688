import { execFileSync } from 'node:child_process'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { changelogVersion, type ReleaseState, releaseProblems, withVersion } from './release-checks.ts'
import { type RepositorySources, repositoryUrl } from './repository-url.ts'
import { runSteps, type Step, type StepHost } from './run-steps.ts'
import { ToolError } from './tool-error.ts'
import type { Manifest } from './workspace.ts'
import { readJson } from './workspace.ts'

const FLAGS = ['--dry-run', '--set-version', '--repository']

/** What a release works with. */
export interface ReleaseRun {
  readonly args: readonly string[]
  readonly environment: RepositorySources['environment']
  /** The checkout. */
  readonly root: string
  /** What is tried before a release, with the package in this file and this repository. */
  readonly steps: (packed: string, repository: string | undefined) => readonly Step[]
  readonly host: StepHost
}

/**
 * Checks everything that a release needs, and creates its tag unless it is a dry run.
 *
 * @throws ToolError `USAGE`, `INVALID_REPOSITORY`, `STAGE_FAILED`, or `RELEASE_NOT_READY` after all problems were
 * printed
 */
export async function runRelease({ args, environment, root, steps, host }: ReleaseRun): Promise<void> {
  const { print } = host
  const unknown = args.find((arg, index) => !FLAGS.includes(arg) && args[index - 1] !== '--repository')
  if (unknown !== undefined) {
    throw new ToolError(
      'USAGE',
      `Received ${unknown}; expected --dry-run or --set-version, --repository URL, or nothing.`,
    )
  }
  const git = (...words: readonly string[]): string => execFileSync('git', words, { cwd: root, encoding: 'utf8' })
  const manifests = ['package.json', ...globSync('{{packages,apps}/*,bench}/package.json', { cwd: root }).sort()]
  const read = (path: string): string => readFileSync(join(root, path), 'utf8')
  const { repository: manifest } = readJson<{ repository?: { url: string } }>(join(root, 'package.json'))
  const state: ReleaseState = {
    changelog: read('CHANGELOG.md'),
    upgradeNotes: read('docs/guides/operate/upgrade.md'),
    versions: Object.fromEntries(manifests.map((path) => [path, readJson<Manifest>(join(root, path)).version])),
    changedFiles: git('status', '--porcelain'),
    tags: git('tag', '--list').split('\n').filter(Boolean),
    repository: repositoryUrl({ args, manifest, environment }),
  }
  const version = changelogVersion(state.changelog)
  if (args.includes('--set-version') && version !== undefined) {
    for (const path of manifests) writeFileSync(join(root, path), withVersion(read(path), version))
    execFileSync('npm', ['install', '--package-lock-only', '--ignore-scripts'], { cwd: root, stdio: 'inherit' })
    print(`Every package.json has the version ${version} now.`)
    return
  }
  const isDryRun = args.includes('--dry-run')
  const problems = releaseProblems(state)
  for (const problem of problems) print(`problem: ${problem}`)
  const packed = `dist/sluice-${state.versions['package.json']}.tgz`
  if (isDryRun || problems.length === 0) await runSteps(steps(packed, state.repository), host)
  if (problems.length > 0) {
    throw new ToolError('RELEASE_NOT_READY', `${problems.length} problems, listed above. Solve them and repeat.`)
  }
  const tag = `v${version}`
  print(`\n${isDryRun ? 'A release would create' : 'Creating'} the tag ${tag} on ${git('rev-parse', 'HEAD')}`)
  if (!isDryRun) git('tag', '--annotate', tag, '--message', `Release ${version}`)
  print(
    `Then: git push origin ${tag}, and in a CI job of that tag with the permission id-token: npm run pack, ` +
      `npm publish ${packed}. npm adds the provenance of ${state.repository} there.`,
  )
}
