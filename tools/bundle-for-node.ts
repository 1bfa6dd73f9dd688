// `node tools/run.mjs tools/bundle-for-node.ts <bundler> <program> <bundle>`: bundles a program for Node with its
// default settings and the packages that it finds. A process of its own, because a bundler opens more than a test may
// leave behind.
import { createRequire } from 'node:module'
import { basename, dirname, parse } from 'node:path'
import type { BuildOptions } from 'esbuild'
import { build } from 'esbuild'
import { rolldown } from 'rolldown'
import { rollup } from 'rollup'
import webpack from 'webpack'

const [bundler = '', program = '', bundle = ''] = process.argv.slice(2)

const ESBUILD: BuildOptions = {
  entryPoints: [program],
  bundle: true,
  platform: 'node',
  format: 'esm',
  // `yaml` is CommonJS, and calls `require` for modules of Node.
  banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
}

const BUNDLERS: Readonly<Record<string, () => Promise<unknown>>> = {
  esbuild: () => build({ ...ESBUILD, outfile: bundle }),
  // What is imported later is a file of its own.
  'esbuild with splitting': () => {
    const { name, ext } = parse(bundle)
    return build({
      ...ESBUILD,
      outdir: dirname(bundle),
      entryNames: name,
      splitting: true,
      outExtension: { '.js': ext },
    })
  },
  rolldown: async () => {
    const onLog = (_level: string, { message }: { readonly message: string }): void => {
      throw new Error(message)
    }
    const made = await rolldown({ input: program, platform: 'node', onLog })
    await made.write({ file: bundle, format: 'esm', codeSplitting: false })
    await made.close()
  },
  // Rollup resolves packages, and reads CommonJS ones, only with plugins. This one resolves the package as Node does.
  rollup: async () => {
    const resolver = createRequire(program)
    const plugin = {
      name: 'sluice',
      resolveId: (id: string) => (/^sluice(?:\/|$)/.test(id) ? resolver.resolve(id) : null),
    }
    const made = await rollup({ input: program, external: /^(?!sluice(?:\/|$)|[./])/, plugins: [plugin] })
    await made.write({ file: bundle, format: 'es', inlineDynamicImports: true })
    await made.close()
  },
  webpack: () =>
    new Promise<void>((resolve, reject) => {
      const experiments = { outputModule: true }
      const output = { path: dirname(bundle), filename: basename(bundle), module: true }
      webpack({ mode: 'production', target: 'node22', entry: program, output, experiments }, (error, stats) => {
        const [problem = error] = stats?.compilation.errors ?? []
        if (problem === null || problem === undefined) resolve()
        else reject(problem)
      })
    }),
}

await BUNDLERS[bundler]!()
