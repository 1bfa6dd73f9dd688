import { execFile } from 'node:child_process'
import { accessSync, constants, existsSync, readdirSync } from 'node:fs'
import { chown, readFile, realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { ServerError } from '../process/server-error.ts'

/** Where Debian and Ubuntu keep the programs of each version, outside of the PATH. */
const DEBIAN_FOLDER = '/usr/lib/postgresql'

const execute = promisify(execFile)

/** A program and the arguments that come before its own. */
export interface ProgramCall {
  readonly command: string
  readonly args: readonly string[]
}

/** The programs of PostgreSQL, run by a user who is not root: as root they do not start. */
export class PostgresPrograms {
  readonly #folder: string
  readonly #owner: { readonly uid: number; readonly gid: number } | undefined

  private constructor(folder: string, owner: PostgresPrograms['owner']) {
    this.#folder = folder
    this.#owner = owner
  }

  /** Whom files must belong to, when that is not the user of this process. */
  get owner(): { readonly uid: number; readonly gid: number } | undefined {
    return this.#owner
  }

  /**
   * Looks on the PATH, and where Debian puts the newest version.
   *
   * @throws ServerError `SLUICE_TESTING_PROGRAM_MISSING` when it is nowhere
   */
  static async find(): Promise<PostgresPrograms> {
    const folder = (await folderOnPath()) ?? debianFolder()
    if (folder === undefined) {
      const message = `postgres is neither on the PATH nor below ${DEBIAN_FOLDER}. apt-get install postgresql`
      throw new ServerError('SLUICE_TESTING_PROGRAM_MISSING', message)
    }
    return new PostgresPrograms(folder, process.getuid?.() === 0 ? await unprivilegedUser() : undefined)
  }

  /** How to start one of them. */
  call(program: string): ProgramCall {
    const path = join(this.#folder, program)
    if (this.#owner === undefined) return { command: path, args: [] }
    const { uid, gid } = this.#owner
    // It becomes the program, with the same process id.
    return { command: 'setpriv', args: [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', path] }
  }

  /** Runs one to its end and resolves with what it printed. Rejects with what it printed as errors. */
  async run(program: string, args: readonly string[], options: { cwd: string; timeout: number }): Promise<string> {
    const call = this.call(program)
    const { stdout } = await execute(call.command, [...call.args, ...args], options)
    return stdout
  }

  /** Gives a file or folder to the user who runs the programs. */
  async give(path: string): Promise<void> {
    if (this.#owner !== undefined) await chown(path, this.#owner.uid, this.#owner.gid)
  }
}

/** The shell knows the PATH. */
async function folderOnPath(): Promise<string | undefined> {
  try {
    const { stdout } = await execute('/bin/sh', ['-c', 'command -v postgres'])
    return dirname(await realpath(stdout.trim()))
  } catch {
    return undefined
  }
}

function debianFolder(): string | undefined {
  const versions = existsSync(DEBIAN_FOLDER) ? readdirSync(DEBIAN_FOLDER) : []
  return versions
    .toSorted((one, other) => Number(other) - Number(one))
    .map((version) => join(DEBIAN_FOLDER, version, 'bin'))
    .find((folder) => isExecutable(join(folder, 'postgres')))
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

async function unprivilegedUser(): Promise<{ uid: number; gid: number }> {
  const users = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'))
  const [, , uid, gid] = users.find(([name]) => name === 'postgres') ?? users.find(([name]) => name === 'nobody') ?? []
  if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) }
  const message = 'PostgreSQL does not run as root, and there is neither a user "postgres" nor "nobody" to run it as.'
  throw new ServerError('SLUICE_TESTING_START_FAILED', message)
}
