import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { ToolError } from './tool-error.ts'

/** A package as one file, as npm would publish it. */
export interface PackFile {
  /** Absolute path of the `.tgz`. */
  readonly path: string
  /** Bytes to download. */
  readonly packedBytes: number
  /** Bytes on disk when it is installed. */
  readonly unpackedBytes: number
  /** Every file in it, relative to the package. */
  readonly files: readonly string[]
}

interface NpmPackReport {
  readonly filename: string
  readonly size: number
  readonly unpackedSize: number
  readonly files: readonly { readonly path: string }[]
}

/**
 * Runs `npm pack` on a folder and puts the file into `destination`, which must exist.
 *
 * @throws ToolError `PACK_FAILED` with what npm said
 */
export function packFile(folder: string, destination: string): PackFile {
  const said = spawnSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', destination], {
    cwd: folder,
    encoding: 'utf8',
    shell: process.platform === 'win32',
  })
  if (said.status !== 0) {
    throw new ToolError(
      'PACK_FAILED',
      `\`npm pack\` in ${folder} ended with code ${said.status}: ${said.error?.message ?? said.stderr}`,
    )
  }
  const [report] = JSON.parse(said.stdout) as [NpmPackReport]
  return {
    path: join(destination, report.filename),
    packedBytes: report.size,
    unpackedBytes: report.unpackedSize,
    files: report.files.map(({ path }) => path),
  }
}
