// `node tools/run.mjs tools/join-modules.ts <folder>`: joins the modules of a staged package. A process of its own,
// because a bundler opens more than a test may leave behind.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { type OutputChunk, type OutputOptions, rolldown } from 'rolldown'
import type { StagedManifest } from './staged-manifest.ts'
import { workersOf } from './staged-modules.ts'
import { runTool, ToolError } from './tool-error.ts'
import { readJson } from './workspace.ts'

const [folder = ''] = process.argv.slice(2)

/**
 * Where parts go that several entries need, and files that are started as threads by one of them, by their place beside
 * it.
 */
const SHARED = 'dist/shared'

const COMMENTS = { legal: true, annotation: true, jsdoc: false }

/**
 * Most of the time that it takes to import a package is spent on finding and opening its files, and there are hundreds.
 * Each entry becomes one file, where it was, and what several entries need becomes files that they share, so that there
 * is still one copy of everything. Types stay as they are, and so do their comments.
 */
await runTool(async () => {
  const { exports } = readJson<Pick<StagedManifest, 'exports'>>(join(folder, 'package.json'))
  const targets = Object.values(exports).flatMap((target) => (typeof target === 'string' ? [] : [target]))
  const files = readdirSync(join(folder, 'dist'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.js'))
    .map((path) => `dist/${path}`)
  const threads = files.flatMap((path) => workersOf(path, readFileSync(join(folder, path), 'utf8')))
  const entries = targets.map((target) => fileOf(target['default']))
  const modules = await joined(
    { ...named(entries, (path) => path), ...named(threads, (path) => `${SHARED}/${basename(path)}`) },
    { format: 'esm', entryFileNames: '[name].js', chunkFileNames: `${SHARED}/[name].js`, comments: COMMENTS },
  )
  for (const { fileName, code } of modules) {
    const missing = workersOf(fileName, code).find((path) => !modules.some((part) => part.fileName === path))
    if (missing !== undefined) throw new ToolError('BUILD_FAILED', `${fileName} starts ${missing}, which is not there.`)
  }
  const required = targets.flatMap(({ require, default: module }) =>
    require === undefined ? [] : [[fileOf((require as { readonly default: string }).default), fileOf(module)] as const],
  )
  const commonJs = await joined(Object.fromEntries(required.map(([to, from]) => [to.slice(0, -4), `./${from}`])), {
    format: 'cjs',
    entryFileNames: '[name].cjs',
    chunkFileNames: 'dist/cjs/shared/[name].cjs',
    // Where ES modules cannot be loaded, `import()` cannot be used either.
    dynamicImportInCjs: false,
    // For test runners, which map positions to these files at best. Names stay, for their stack traces.
    minify: { compress: true, mangle: false, codegen: true },
    comments: false,
  })
  for (const path of files) rmSync(join(folder, path))
  for (const { fileName, code } of [...modules, ...commonJs]) {
    mkdirSync(dirname(join(folder, fileName)), { recursive: true })
    writeFileSync(join(folder, fileName), code)
  }
})

/** Bundles files of the package, given by the place that each is to have. */
async function joined(input: Readonly<Record<string, string>>, options: OutputOptions): Promise<OutputChunk[]> {
  const build = await rolldown({
    input,
    cwd: folder,
    platform: 'neutral',
    external: /^(?![./])/,
    onLog: (_level, log) => {
      throw new ToolError('BUILD_FAILED', `The modules of the package cannot be joined: ${log.message}`)
    },
  })
  const { output } = await build.generate(options)
  await build.close()
  return output.filter((part) => part.type === 'chunk')
}

/** Inputs of the bundler: each file by the place that it is to have. */
function named(paths: readonly string[], placeOf: (path: string) => string): Record<string, string> {
  return Object.fromEntries(paths.map((path) => [placeOf(path).replace(/\.js$/, ''), `./${path}`]))
}

/** A path of package.json, relative to the package. */
function fileOf(target: unknown): string {
  return (target as string).slice('./'.length)
}
