import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { runBinary } from './binaries.ts'
import { ToolError } from './tool-error.ts'
import { repositoryRoot } from './workspace.ts'

/** What the built dashboard is made of. */
const SOURCES = [
  'apps/dashboard/src',
  'apps/dashboard/public',
  'apps/dashboard/index.html',
  'apps/dashboard/vite.config.ts',
  'packages/contract/src',
  'packages/core/src',
]

/** The built dashboard. */
export const DASHBOARD_FOLDER = 'apps/dashboard/dist'

/** Builds the dashboard unless it was built after the last change of its sources. Takes a few seconds. */
export async function ensureDashboard(root: string = repositoryRoot): Promise<void> {
  if (isBuilt(root)) return
  console.error('sluice: building the dashboard')
  // Built beside its place and then moved: another process may read it, or build it at the same time.
  const outDir = join(root, 'apps/dashboard/node_modules', `.dist-${process.pid}`)
  await buildDashboard(outDir)
  moveTo(join(root, DASHBOARD_FOLDER), outDir)
}

/**
 * Builds the dashboard into a folder. `flags`: further ones of Node.
 *
 * @throws ToolError `DASHBOARD_NOT_BUILT`
 */
export async function buildDashboard(outDir: string, flags: readonly string[] = []): Promise<void> {
  const args = ['build', 'apps/dashboard', ...VITE_OPTIONS, '--outDir', outDir]
  // The configuration of vite imports the contract: from its sources, because a fresh clone has nothing compiled.
  const code = await runBinary('vite', args, ['--conditions=source', ...flags])
  if (code === 0) return
  throw new ToolError(
    'DASHBOARD_NOT_BUILT',
    `vite ended with code ${code}; its output is above. Correct what it names, or start with --no-dashboard.`,
  )
}

const VITE_OPTIONS = [
  '--config',
  'apps/dashboard/vite.config.ts',
  '--configLoader',
  'native',
  '--emptyOutDir',
  '--logLevel',
  'error',
] as const

function moveTo(place: string, built: string): void {
  rmSync(place, { recursive: true, force: true })
  try {
    renameSync(built, place)
  } catch {
    // Another process was quicker; what it built is the same.
    rmSync(built, { recursive: true, force: true })
  }
}

/** Whether the dashboard was built after the last change of its sources. */
export function isBuilt(root: string): boolean {
  const built = join(root, DASHBOARD_FOLDER, 'index.html')
  if (!existsSync(built)) return false
  const { mtimeMs } = statSync(built)
  return SOURCES.every((source) => newestMs(join(root, source)) <= mtimeMs)
}

/** When a file, or the newest file of a folder, was changed; 0 when there is none. */
function newestMs(path: string): number {
  if (!existsSync(path)) return 0
  if (!statSync(path).isDirectory()) return statSync(path).mtimeMs
  const files = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return files.reduce((newest, { parentPath, name }) => Math.max(newest, statSync(join(parentPath, name)).mtimeMs), 0)
}
