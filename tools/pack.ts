// `npm run pack`: builds the package that users install as dist/sluice-<version>.tgz and prints how large it is.
// `-- --repository URL` writes the repository into its package.json; in GitHub Actions it is known.
import { mkdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { runBinary } from './binaries.ts'
import { bundle } from './bundle.ts'
import { packFile } from './pack-file.ts'
import { statedSizes } from './package-sizes.ts'
import { repositoryUrl } from './repository-url.ts'
import { completePackage, stagePackage } from './stage-package.ts'
import { runTool, ToolError } from './tool-error.ts'
import { readJson, repositoryRoot } from './workspace.ts'

const destination = join(repositoryRoot, 'dist')
/** As an installed package stands, so that programs beside it find it. */
const folder = join(destination, 'node_modules/sluice')

const kilobytes = (bytes: number): string => `${(bytes / 1000).toFixed(1)} kB`.padStart(10)

await runTool(async () => {
  const { repository: manifest } = readJson<{ repository?: { url: string } }>(join(repositoryRoot, 'package.json'))
  const repository = repositoryUrl({ args: process.argv.slice(2), manifest, environment: process.env })
  if ((await runBinary('tsc', ['-b', 'packages/sluice'])) !== 0) {
    throw new ToolError('BUILD_FAILED', 'The package does not compile; what is wrong is above. Mend it and repeat.')
  }
  stagePackage({ root: repositoryRoot, folder, repository })
  completePackage(folder)
  mkdirSync(destination, { recursive: true })
  const { path, packedBytes, unpackedBytes, files } = packFile(folder, destination)
  console.log(`${relative(repositoryRoot, path)}, ${files.length} files`)
  console.log(`${kilobytes(packedBytes)}  to download`)
  console.log(`${kilobytes(unpackedBytes)}  installed`)
  console.log('Minified and compressed, with everything it imports from the package:')
  for (const { entry, program } of statedSizes(
    readFileSync(join(repositoryRoot, 'docs/reference/package.md'), 'utf8'),
  )) {
    const { gzipBytes } = await bundle({ program, folder: destination })
    console.log(`${kilobytes(gzipBytes)}  ${entry}`)
  }
})
