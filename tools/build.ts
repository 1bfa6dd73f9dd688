// `npm run build`: compiles every package that is published into its dist folder, from nothing. Tests are compiled too,
// because they belong to the same TypeScript project; the `files` of each package.json leave them out of what npm
// packs.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { runBinary } from './binaries.ts'
import { runSteps, terminal } from './run-steps.ts'
import { runTool } from './tool-error.ts'
import { isPublished, readWorkspace, repositoryRoot } from './workspace.ts'

const published = readWorkspace(repositoryRoot).filter(isPublished)

await runTool(async () => {
  for (const { folder } of published) {
    // A file whose source is gone would be published for ever; a build record without its files would build nothing.
    rmSync(join(repositoryRoot, folder, 'dist'), { recursive: true, force: true })
    rmSync(join(repositoryRoot, folder, 'tsconfig.tsbuildinfo'), { force: true })
  }
  await runSteps(
    published.map(({ folder, manifest }) => ({
      title: `build ${manifest.name ?? folder}`,
      command: `npx tsc -b ${folder}`,
      run: () => runBinary('tsc', ['-b', folder]),
    })),
    terminal,
  )
})
