import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join, sep } from 'node:path'
import { gunzipSync } from 'node:zlib'

/** One file of the dashboard, as it is and in every encoding that it was built in. */
export interface DashboardFile {
  readonly bytes: Buffer
  /** Undefined where compression saves nothing. */
  readonly br: Buffer | undefined
  readonly gzip: Buffer | undefined
  readonly contentType: string
  readonly etag: string
  /** Whether its name changes with its content. */
  readonly isHashed: boolean
}

/** The files of the dashboard by path, such as `assets/index-BGlrooTe.js`. */
export type DashboardFiles = ReadonlyMap<string, DashboardFile>

/** How to make the files. */
export const BUILD_COMMAND = 'npm run build --workspace apps/dashboard'

/** In the package the files are next to the program; in the repository, where the dashboard is built. */
const FOLDERS = [join(import.meta.dirname, 'dashboard'), join(import.meta.dirname, '../../../../dashboard/dist')]

/** The folder of the built dashboard; undefined when it was not built. */
export function dashboardFolder(): string | undefined {
  return FOLDERS.find((folder) => ['index.html', 'index.html.gz'].some((name) => existsSync(join(folder, name))))
}

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.woff2': 'font/woff2',
}

/** As the bundler names files: a dash and eight characters of a digest before the extension. */
const HASHED = /-[\w-]{8}\.\w+$/

/**
 * Reads all files of a built dashboard: a few hundred kilobytes. Requests look them up by name, so no path of a request
 * ever reaches the file system. Hidden files and the table of the bundler are left out. The package leaves out files
 * that it has compressed with gzip, which keeps its download small.
 */
export function readDashboardFiles(folder: string): DashboardFiles {
  const files = new Map<string, DashboardFile>()
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name.replace(/\.gz$/, ''))
    const name = path
      .slice(folder.length)
      .split(sep)
      .filter((part) => part !== '')
      .join('/')
    if (isLeftOut(name) || files.has(name)) continue
    const bytes = existsSync(path) ? readFileSync(path) : gunzipSync(readFileSync(`${path}.gz`))
    files.set(name, {
      bytes,
      br: encodedIn(`${path}.br`, bytes),
      gzip: encodedIn(`${path}.gz`, bytes),
      contentType: CONTENT_TYPES[extname(name)] ?? 'application/octet-stream',
      etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`,
      isHashed: HASHED.test(name),
    })
  }
  return files
}

function isLeftOut(name: string): boolean {
  return /(?:^|\/)\.|\.(?:br|map)$|^manifest\.json$/.test(name)
}

function encodedIn(path: string, bytes: Buffer): Buffer | undefined {
  if (!existsSync(path)) return undefined
  const encoded = readFileSync(path)
  return encoded.length < bytes.length ? encoded : undefined
}
