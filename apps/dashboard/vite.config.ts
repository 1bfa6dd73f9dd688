import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { defineConfig, type Plugin } from 'vite'
import { OPERATION_ROUTES } from './src/api/operation-routes.ts'

const ROUTES_FILE = join(import.meta.dirname, 'src/api/operation-routes.ts')
const COMPRESSIBLE = /\.(?:js|css|html|svg|json)$/
/** Smaller files gain nothing: they fit into one packet. */
const SMALLEST_COMPRESSED_BYTES = 1024

/**
 * Replaces the table of operations by what the page needs of it. The table of the contract holds every schema and
 * description: five times the size of the rest of the first page.
 */
function operationRoutes(): Plugin {
  return {
    name: 'operation-routes',
    load(id) {
      return id === ROUTES_FILE ? `export const OPERATION_ROUTES = ${JSON.stringify(OPERATION_ROUTES)}` : null
    },
  }
}

/** Writes `<file>.gz` and `<file>.br` next to each asset, so that a server compresses nothing at run time. */
function precompressed(): Plugin {
  let outDir = ''
  return {
    name: 'precompressed',
    apply: 'build',
    configResolved(config) {
      outDir = resolve(config.root, config.build.outDir)
    },
    closeBundle() {
      for (const entry of readdirSync(outDir, { recursive: true, encoding: 'utf8' })) {
        if (!COMPRESSIBLE.test(entry)) continue
        const path = join(outDir, entry)
        const bytes = readFileSync(path)
        if (bytes.length < SMALLEST_COMPRESSED_BYTES) continue
        writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }))
        const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length }
        writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params }))
      }
    },
  }
}

export default defineConfig({
  root: import.meta.dirname,
  // Assets are found from the base of the page, so that the dashboard works under any path behind a proxy.
  base: './',
  resolve: { conditions: ['source', 'module', 'browser', 'default'] },
  plugins: [operationRoutes(), precompressed()],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  css: { modules: { localsConvention: 'camelCaseOnly' } },
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: 'es2023',
    manifest: 'manifest.json',
    // A data URL is no `img-src 'self'`, and a style in a script is no `style-src 'self'`.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: {
    proxy: Object.fromEntries(
      ['/admin', '/v1', '/internal', '/livez', '/readyz', '/openapi.json'].map((path) => [
        path,
        'http://127.0.0.1:8080',
      ]),
    ),
  },
})
