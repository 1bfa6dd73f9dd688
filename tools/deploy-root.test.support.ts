import { execFile, execFileSync } from 'node:child_process'
import { chmodSync, chownSync, copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { imageCommand, imageEnvironment } from './deploy.test.support.ts'
import { ExampleProcess } from './examples-process.ts'
import { repositoryRoot } from './workspace.ts'

/** The user of the image. */
const USER = 65_532

/** Where the base image has Node. */
const NODE = '/nodejs/bin/node'

const run = promisify(execFile)

/** How a program in the image ended. */
export interface ProgramEnd {
  readonly code: number
  readonly output: string
}

/**
 * The root filesystem that the Dockerfile describes, made without an engine: the bundle, Node and the libraries that
 * Node is linked with, and nothing else. Programs are started in it by chroot, as the user of the image, with all but
 * the data folder read-only. That needs the right to mount: where it is missing, the output of the program says so.
 */
export class ImageRoot {
  readonly folder: string
  readonly #before: ReadonlySet<string>

  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'sluice-image-'))
    // The user of the image reads all of it.
    chmodSync(this.folder, 0o755)
    const flags = ['--conditions=source', '--disable-warning=ExperimentalWarning']
    const bundle = join(repositoryRoot, 'tools/bundle-service.ts')
    execFileSync(process.execPath, [...flags, bundle, join(this.folder, 'opt/sluice')])
    this.#copy(process.execPath, NODE)
    for (const library of librariesOf(process.execPath)) this.#copy(library, library)
    mkdirSync(join(this.folder, 'proc'))
    mkdirSync(this.data, { recursive: true })
    if (isRoot()) chownSync(this.data, USER, USER)
    this.#before = new Set(this.files())
  }

  /** The folder that the service writes to, as seen from outside. */
  get data(): string {
    return join(this.folder, imageEnvironment()['SLUICE_DATA_DIR']!)
  }

  /** Starts the image with more variables, as `docker run --env` does. */
  start(env: Readonly<Record<string, string>>): ExampleProcess {
    const [command = '', ...args] = this.#inside(imageCommand('ENTRYPOINT'))
    return new ExampleProcess({ command, args, cwd: '/', env: { ...imageEnvironment(), ...env } })
  }

  /** Runs the health check of the image. */
  async checkHealth(env: Readonly<Record<string, string>>): Promise<ProgramEnd> {
    const [command = '', ...args] = this.#inside(imageCommand('CMD'))
    try {
      const { stdout, stderr } = await run(command, args, { env: { PATH: process.env['PATH'] ?? '', ...env } })
      return { code: 0, output: stdout + stderr }
    } catch (error) {
      const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
      return { code, output: stdout + stderr }
    }
  }

  /** All files, by their paths in the image. */
  files(): readonly string[] {
    return readdirSync(this.folder, { recursive: true, withFileTypes: true }).flatMap((entry) =>
      entry.isFile() ? [join(entry.parentPath, entry.name).slice(this.folder.length)] : [],
    )
  }

  /** Files that were not there when it was made. */
  written(): readonly string[] {
    return this.files().filter((path) => !this.#before.has(path))
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }

  #copy(from: string, to: string): void {
    mkdirSync(join(this.folder, dirname(to)), { recursive: true })
    copyFileSync(from, join(this.folder, to))
  }

  /** Without root there is a namespace in which this user is root, and no other user. */
  #inside(command: readonly string[]): readonly string[] {
    const user = isRoot() ? [`--userspec=${USER}:${USER}`] : []
    const namespaces = isRoot() ? ['--mount'] : ['--mount', '--map-root-user']
    return ['unshare', ...namespaces, '/bin/sh', '-ec', ENTER, this.folder, this.data, ...user, this.folder, ...command]
  }
}

/** Makes the root filesystem read-only but for the data folder, for this process alone, and goes there. */
const ENTER = `
data=$1; shift
mount --bind "$0" "$0"
mount --bind "$data" "$data"
mount --rbind /proc "$0/proc"
mount -o remount,bind,ro "$0"
exec /usr/sbin/chroot "$@"
`

function isRoot(): boolean {
  return process.getuid?.() === 0
}

function librariesOf(program: string): readonly string[] {
  const listed = execFileSync('/usr/bin/ldd', [program], { encoding: 'utf8' })
  return [...listed.matchAll(/(?:^\s*|=> )(\/\S+)/gm)].map(([, path = '']) => path)
}
