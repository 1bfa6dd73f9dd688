// `node tools/run.mjs tools/join-modules.ts <folder>`: joins the modules of a staged package. A process of its own,
// because a bundler opens more than a test may leave behind.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { rolldown } from 'rolldown'
import { workersOf } from './staged-modules.ts'
import { runTool, ToolError } from './tool-error.ts'
import { readJson } from './workspace.ts'

const [folder = ''] = process.argv.slice(2)

/**
 * Where parts go that several entries need, and files that are started as threads by one of them, by their place beside
 * it.
 */
const SHARED = 'dist/shared'

/**
 * Most of the time that it takes to import a package is spent on finding and opening its files, and there are hundreds.
 * Each entry becomes one file, where it was, and what several entries need becomes files that they share, so that there
 * is still one copy of everything. Types stay as they are.
 */
await runTool(async () => {
  const files = readdirSync(join(folder, 'dist'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.js'))
    .map((path) => `dist/${path}`)
  const threads = files.flatMap((path) => workersOf(path, readFileSync(join(folder, path), 'utf8')))
  const build = await rolldown({
    input: { ...named(entries(), (path) => path), ...named(threads, (path) => `${SHARED}/${basename(path)}`) },
    cwd: folder,
    platform: 'neutral',
    external: /^(?![./])/,
    onLog: (_level, log) => {
      throw new ToolError('BUILD_FAILED', `The modules of the package cannot be joined: ${log.message}`)
    },
  })
  const { output } = await build.generate({
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: `${SHARED}/[name].js`,
  })
  await build.close()
  const parts = output.filter((part) => part.type === 'chunk')
  for (const { fileName, code } of parts) {
    const missing = workersOf(fileName, code).find((path) => !parts.some((part) => part.fileName === path))
    if (missing !== undefined) throw new ToolError('BUILD_FAILED', `${fileName} starts ${missing}, which is not there.`)
  }
  for (const path of files) rmSync(join(folder, path))
  for (const { fileName, code } of parts) {
    mkdirSync(dirname(join(folder, fileName)), { recursive: true })
    writeFileSync(join(folder, fileName), code)
  }
})

/** Inputs of the bundler: each file by the place that it is to have. */
function named(paths: readonly string[], placeOf: (path: string) => string): Record<string, string> {
  return Object.fromEntries(paths.map((path) => [placeOf(path).replace(/\.js$/, ''), `./${path}`]))
}

function entries(): string[] {
  const { exports } = readJson<{ readonly exports: Readonly<Record<string, unknown>> }>(join(folder, 'package.json'))
  return Object.values(exports).flatMap((target) => {
    const file = (target as { readonly default?: string }).default
    return file?.endsWith('.js') === true ? [file.slice('./'.length)] : []
  })
}
