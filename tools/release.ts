// `npm run release -- --dry-run`: checks everything that a release needs, and prints what the release would do. Without
// the flag it also creates the tag. `-- --set-version` writes the version of CHANGELOG.md into every package.json.
import { execFileSync } from 'node:child_process'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runBinary } from './binaries.ts'
import { packedCommandOn } from './packed-command.ts'
import { changelogVersion, type ReleaseState, releaseProblems, withVersion } from './release-checks.ts'
import { runSteps, type Step, terminal } from './run-steps.ts'
import { runTool, ToolError } from './tool-error.ts'
import type { Manifest } from './workspace.ts'
import { readJson, repositoryRoot } from './workspace.ts'

/** The oldest Node that the package supports, the one before the pinned one, and the newest. */
const NODE_VERSIONS = ['22.13.0', '22', 'latest']

const read = (path: string): string => readFileSync(join(repositoryRoot, path), 'utf8')

const git = (...args: readonly string[]): string => execFileSync('git', args, { cwd: repositoryRoot, encoding: 'utf8' })

const manifests = [
  'package.json',
  ...globSync('{{packages,apps}/*,bench}/package.json', { cwd: repositoryRoot }).sort(),
]

function releaseState(): ReleaseState {
  const root = readJson<Manifest & { readonly repository?: { readonly url: string } }>(
    join(repositoryRoot, 'package.json'),
  )
  return {
    changelog: read('CHANGELOG.md'),
    upgradeNotes: read('docs/guides/operate/upgrade.md'),
    versions: Object.fromEntries(
      manifests.map((path) => [path, readJson<Manifest>(join(repositoryRoot, path)).version]),
    ),
    changedFiles: git('status', '--porcelain'),
    tags: git('tag', '--list').split('\n').filter(Boolean),
    repository: root.repository?.url,
  }
}

function stepsOf(tarball: string): Step[] {
  const runner = join(repositoryRoot, 'tools/run.mjs')
  const tests = ['tools/stage-package.test.ts', 'tools/package-install.test.ts', 'tools/package-commands.test.ts']
  return [
    {
      title: 'package',
      command: 'npm run pack',
      run: () => {
        execFileSync(process.execPath, [runner, 'tools/pack.ts'], { cwd: repositoryRoot, stdio: 'inherit' })
        return Promise.resolve(0)
      },
    },
    {
      title: 'installs, entries, types, publint, are-the-types-wrong',
      command: `npx vitest run ${tests.join(' ')}`,
      run: () => runBinary('vitest', ['run', ...tests]),
    },
    {
      title: 'databases of earlier versions',
      command: 'npx vitest run apps/service/src/scenarios/kept-database.test.ts',
      run: () => runBinary('vitest', ['run', 'apps/service/src/scenarios/kept-database.test.ts']),
    },
    ...NODE_VERSIONS.map((version) => ({
      title: `the command on Node ${version}`,
      command: `npm install node@${version} ${tarball}`,
      run: () => packedCommandOn({ version, tarball: join(repositoryRoot, tarball), print: terminal.print }),
    })),
  ]
}

function setVersion(version: string): void {
  for (const path of manifests) writeFileSync(join(repositoryRoot, path), withVersion(read(path), version))
  execFileSync('npm', ['install', '--package-lock-only', '--ignore-scripts'], { cwd: repositoryRoot, stdio: 'inherit' })
  console.log(`Every package.json has the version ${version} now.`)
}

await runTool(async () => {
  const args = process.argv.slice(2)
  const unknown = args.find((arg) => !['--dry-run', '--set-version'].includes(arg))
  if (unknown !== undefined) {
    throw new ToolError('USAGE', `Received ${unknown}; expected --dry-run or --set-version, or nothing.`)
  }
  const state = releaseState()
  const version = changelogVersion(state.changelog)
  if (args.includes('--set-version') && version !== undefined) {
    setVersion(version)
    return
  }
  const isDryRun = args.includes('--dry-run')
  const problems = releaseProblems(state)
  for (const problem of problems) console.log(`problem: ${problem}`)
  const packed = `dist/sluice-${state.versions['package.json']}.tgz`
  if (isDryRun || problems.length === 0) await runSteps(stepsOf(packed), terminal)
  if (problems.length > 0) {
    throw new ToolError('RELEASE_NOT_READY', `${problems.length} problems, listed above. Solve them and repeat.`)
  }
  const tag = `v${version}`
  console.log(`\n${isDryRun ? 'A release would create' : 'Creating'} the tag ${tag} on ${git('rev-parse', 'HEAD')}`)
  if (!isDryRun) git('tag', '--annotate', tag, '--message', `Release ${version}`)
  console.log(
    `Then: git push origin ${tag}, and in a CI job of that tag with the permission id-token: npm publish ${packed}. ` +
      'npm adds the provenance there.',
  )
})
