// `npm run release -- --dry-run`: checks everything that a release needs, and prints what the release would do. Without
// the flag it also creates the tag. `-- --set-version` writes the version of CHANGELOG.md into every package.json.
// `-- --repository URL` names the repository if package.json does not.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { runBinary } from './binaries.ts'
import { packedCommandOn } from './packed-command.ts'
import { runRelease } from './release-run.ts'
import { type Step, terminal } from './run-steps.ts'
import { runTool } from './tool-error.ts'
import { repositoryRoot } from './workspace.ts'

/** The oldest Node that the package supports, the one before the pinned one, and the newest. */
const NODE_VERSIONS = ['22.19.0', '22', 'latest']

function stepsOf(tarball: string, repository: string | undefined): Step[] {
  const runner = join(repositoryRoot, 'tools/run.mjs')
  const packing = ['tools/pack.ts', ...(repository === undefined ? [] : ['--repository', repository])]
  const tests = ['tools/stage-package.test.ts', 'tools/package-install.test.ts', 'tools/package-commands.test.ts']
  return [
    {
      title: 'package',
      command: `node tools/run.mjs ${packing.join(' ')}`,
      run: () => {
        execFileSync(process.execPath, [runner, ...packing], { cwd: repositoryRoot, stdio: 'inherit' })
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

await runTool(() =>
  runRelease({
    args: process.argv.slice(2),
    environment: process.env,
    root: repositoryRoot,
    steps: stepsOf,
    host: terminal,
  }),
)
