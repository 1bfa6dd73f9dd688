import { gzipSync } from 'node:zlib'
import { rolldown } from 'rolldown'

/** A program and everything it imports, as a bundler for browsers and edge runtimes makes it. */
export interface Bundle {
  /** Files that something of is left of after tree-shaking, as absolute paths, sorted. */
  readonly modules: readonly string[]
  /** What is imported still: `node:` modules, and packages other than `sluice`. */
  readonly imports: readonly string[]
  /** All its parts, minified. */
  readonly code: string
  /** Bytes after gzip, of all its parts together. */
  readonly gzipBytes: number
}

/** What to bundle. */
export interface BundlePlan {
  /** The program, such as `import { createLimiter } from 'sluice'; createLimiter({ limit: 1, window: '1s' })`. */
  readonly program: string
  /** The folder that it is thought to stand in: `sluice` is looked for from there. */
  readonly folder: string
}

const PROGRAM = 'bundle-program.js'

/** Bundles a program for any runtime: no condition and no module of Node is assumed. Writes no file. */
export async function bundle({ program, folder }: BundlePlan): Promise<Bundle> {
  const entry = `${folder}/${PROGRAM}`
  const build = await rolldown({
    input: entry,
    cwd: folder,
    platform: 'neutral',
    external: /^(?!sluice(?:\/|$)|[./])/,
    logLevel: 'warn',
    onLog: (_level, log) => {
      throw new Error(`The bundler complains about ${program}: ${log.message}`)
    },
    plugins: [
      {
        name: 'program',
        resolveId: (id) => (id === entry ? entry : null),
        load: (id) => (id === entry ? program : null),
      },
    ],
  })
  try {
    const { output } = await build.generate({ format: 'esm', minify: true })
    const chunks = output.filter((part) => part.type === 'chunk')
    const own = new Set(chunks.map(({ fileName }) => fileName))
    const imports = chunks.flatMap((chunk) => [...chunk.imports, ...chunk.dynamicImports])
    return {
      modules: chunks
        .flatMap((chunk) => chunk.moduleIds)
        .filter((id) => id !== entry)
        .sort(),
      imports: [...new Set(imports.filter((name) => !own.has(name)))].sort(),
      code: chunks.map(({ code }) => code).join('\n'),
      gzipBytes: chunks.reduce((sum, { code }) => sum + gzipSync(code).length, 0),
    }
  } finally {
    await build.close()
  }
}
