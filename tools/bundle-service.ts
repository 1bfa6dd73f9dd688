// `node tools/run.mjs tools/bundle-service.ts <folder>`: writes the service into a folder, as plain JavaScript with all
// that it imports. Node alone runs it: `node <folder>/dist/service/main.js`. The image and the systemd unit of deploy/
// start that file.
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { build } from 'esbuild'
import { runTool, ToolError } from './tool-error.ts'
import type { Manifest } from './workspace.ts'
import { readJson, repositoryRoot } from './workspace.ts'

/** Two folders below the top: the service reads `../../package.json`, the Redis store `../../lua`. */
const PROGRAMS = 'dist/service'

/** Packages written for CommonJS call `require` for modules of Node, which a module has to make for itself. */
const REQUIRE = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);"

await runTool(async () => {
  const [given] = process.argv.slice(2)
  if (given === undefined) {
    throw new ToolError(
      'FOLDER_MISSING',
      'No folder was given. Expected: node tools/run.mjs tools/bundle-service.ts <folder>.',
    )
  }
  const folder = resolve(given)
  rmSync(join(folder, 'dist'), { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  await build({
    absWorkingDir: repositoryRoot,
    // The second is started as a thread, by its place beside the first.
    entryPoints: ['apps/service/src/main.ts', 'apps/service/src/workers/worker-main.ts'],
    entryNames: '[name]',
    outdir: join(folder, PROGRAMS),
    // One file for each: names of a CommonJS package that is imported later are known only inside of the file that has
    // it.
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    conditions: ['source'],
    // An optional part of pg, which is not installed.
    external: ['pg-native'],
    banner: { js: REQUIRE },
    legalComments: 'linked',
    logLevel: 'warning',
  })
  cpSync(join(repositoryRoot, 'packages/store-redis/lua'), join(folder, 'lua'), { recursive: true })
  cpSync(join(repositoryRoot, 'LICENSE'), join(folder, 'LICENSE'))
  const { version } = readJson<Manifest>(join(repositoryRoot, 'apps/service/package.json'))
  const manifest = { name: 'sluice-service', version, license: 'MIT', private: true, type: 'module' }
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
})
