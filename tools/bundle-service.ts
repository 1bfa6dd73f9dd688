// `node tools/run.mjs tools/bundle-service.ts <folder> [cli] [harness]`: writes the service into a folder, as plain
// JavaScript with everything that it imports, and other programs with it. Node alone runs it:
// `node <folder>/dist/programs/service.js`. The image and the systemd unit of deploy/ start that file, and so does the
// `sluice` command of the published package. A process of its own, because a bundler opens more than a test may leave
// behind.
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { type Plugin, rolldown } from 'rolldown'
import { serviceDocument } from '../apps/service/src/operations/openapi.ts'
import { DASHBOARD_FOLDER, ensureDashboard } from './dashboard-build.ts'
import { inlineLuaFiles } from './lua-files.ts'
import { runTool, ToolError } from './tool-error.ts'
import type { Manifest } from './workspace.ts'
import { readJson, repositoryRoot } from './workspace.ts'

/** All files are in this one folder: programs find each other, their threads and package.json by relative paths. */
const PROGRAMS = 'dist/programs'

/** The command line starts the others by these names, see apps/cli/src/programs/child-program.ts. */
const MAIN_FILES: Readonly<Record<string, string>> = {
  cli: 'apps/cli/src/main.ts',
  service: 'apps/service/src/main.ts',
  harness: 'apps/harness/src/main.ts',
}

/**
 * The file that the unit and the image start. It has no imports, so that a Node that is too old for the service says
 * so, instead of naming a module that it does not have.
 */
const serviceEntry = (oldestNode: string): string => `const [oldest, found] = ['${oldestNode}', process.versions.node]
if (found.localeCompare(oldest, 'en', { numeric: true }) < 0) {
  const problem = 'this is Node ' + found + ' at ' + process.execPath + '; Node ' + oldest + ' or later is needed.'
  process.stderr.write('sluice: SLUICE_CLI_NODE_TOO_OLD: ' + problem + ' Install it from https://nodejs.org.\\n')
  process.exitCode = 1
} else {
  await import('./service-main.js')
}
`

const USAGE = 'Expected: node tools/run.mjs tools/bundle-service.ts <folder> [cli] [harness].'

await runTool(async () => {
  const [folder, ...others] = process.argv.slice(2)
  if (folder === undefined) throw new ToolError('FOLDER_MISSING', `No folder was given. ${USAGE}`)
  const unknown = others.find((name) => !Object.hasOwn(MAIN_FILES, name))
  if (unknown !== undefined) throw new ToolError('PROGRAM_UNKNOWN', `There is no program "${unknown}". ${USAGE}`)
  rmSync(join(folder, PROGRAMS), { recursive: true, force: true })
  await bundle(folder, ['service', ...others])
  await ensureDashboard()
  // The service looks for it beside its own file, and makes a file of its compressed form where that alone is there.
  const dashboard = join(repositoryRoot, DASHBOARD_FOLDER)
  const filter = (path: string): boolean => !existsSync(`${path}.gz`)
  cpSync(dashboard, join(folder, PROGRAMS, 'dashboard'), { recursive: true, filter })
  const manifest = join(folder, 'package.json')
  if (!existsSync(manifest)) writeManifest(manifest)
  if (!existsSync(join(folder, 'LICENSE'))) cpSync(join(repositoryRoot, 'LICENSE'), join(folder, 'LICENSE'))
  const { version = '' } = readJson<Manifest>(manifest)
  writeFileSync(join(folder, 'openapi.json'), `${JSON.stringify(serviceDocument(version))}\n`)
})

/** The service reads its version from it. */
function writeManifest(path: string): void {
  const { version } = readJson<Manifest>(join(repositoryRoot, 'apps/service/package.json'))
  const manifest = { name: 'sluice-service', version, license: 'MIT', private: true, type: 'module' }
  writeFileSync(path, `${JSON.stringify(manifest, null, 2)}\n`)
}

async function bundle(folder: string, programs: readonly string[]): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const build = await rolldown({
    input: Object.fromEntries(programs.map((name) => [name, MAIN_FILES[name]!])),
    cwd: repositoryRoot,
    platform: 'node',
    // The bundler adds `import` or `require`, by how a module is named.
    resolve: { conditionNames: ['source', 'node', 'default'] },
    // An optional part of pg, which is not installed.
    external: ['pg-native'],
    plugins: [relativeFiles()],
    onLog: (_level, log) => {
      throw new ToolError('BUILD_FAILED', `The programs of the package cannot be bundled: ${log.message}`)
    },
  })
  const { output } = await build.write({
    dir: join(folder, PROGRAMS),
    format: 'esm',
    entryFileNames: ({ name }) => (name === 'service' ? 'service-main.js' : '[name].js'),
    chunkFileNames: '[name].js',
    // Names of functions and classes stay, because operators send stack traces.
    minify: { compress: true, mangle: { keepNames: true }, codegen: true },
    comments: false,
  })
  await build.close()
  const { engines } = readJson<Manifest>(join(repositoryRoot, 'apps/service/package.json'))
  writeFileSync(join(folder, PROGRAMS, 'service.js'), serviceEntry(engines!['node']!.replace('>=', '')))
  const modules = output.flatMap((part) => (part.type === 'chunk' ? part.moduleIds : []))
  writeFileSync(join(folder, 'THIRD-PARTY-LICENSES.md'), licencesOf([...modules, ...dashboardPackages()]))
}

/** Adapts what the sources find by paths relative to themselves: threads, processes, package.json and Lua files. */
function relativeFiles(): Plugin {
  return {
    name: 'relative-files',
    load(id) {
      if (!id.endsWith('/packages/store-redis/src/wire/lua-files.ts')) return null
      return { code: inlineLuaFiles(join(repositoryRoot, 'packages/store-redis/lua')), moduleType: 'js' }
    },
    transform(code, id) {
      if (id.includes('/node_modules/') || !code.includes('import.meta.url')) return null
      for (const [, path] of code.matchAll(/new URL\([`'](\.\/[\w-]+)\.?\$\{[^`]*\}[`'], import\.meta\.url\)/g)) {
        this.emitFile({ type: 'chunk', id: resolve(dirname(id), `${path}.ts`), fileName: `${path!.slice(2)}.js` })
      }
      return code.replaceAll(
        /new URL\('(?:\.\.\/)+package\.json', import\.meta\.url\)/g,
        "new URL('../../package.json', import.meta.url)",
      )
    },
  }
}

/** Files of the packages from npm that the dashboard is built with. */
function dashboardPackages(): readonly string[] {
  const { dependencies = {} } = readJson<Manifest>(join(repositoryRoot, 'apps/dashboard/package.json'))
  const names = [...Object.keys(dependencies).filter((name) => !name.startsWith('@sluice/')), '@preact/signals-core']
  return names.map((name) => join(repositoryRoot, 'node_modules', name, 'package.json'))
}

/** The licences of the packages from npm whose code is in the bundle, which ask to be shipped with it. */
function licencesOf(modules: readonly string[]): string {
  const packages = new Set(
    modules.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(id)?.[0] ?? []).filter(existsSync),
  )
  const named = new Map<string, string[]>()
  for (const path of [...packages].toSorted()) {
    const { name = '', version = '', license } = readJson<Manifest>(join(path, 'package.json'))
    const [file] = globSync('{LICENSE,LICENCE,License,license}*', { cwd: path })
    const text = file === undefined ? 'The package has no licence file.' : readFileSync(join(path, file), 'utf8').trim()
    named.set(text, [...(named.get(text) ?? []), `- ${name} ${version}, ${license}`])
  }
  const texts = [...named].map(([text, names]) => `${names.join('\n')}\n\n${text}\n`)
  const head = `# Licences of bundled packages\n\nThe programs in \`${PROGRAMS}\` contain code of these packages.\n`
  return [head, ...texts].join('\n---\n\n')
}
