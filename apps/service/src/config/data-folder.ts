import { chmod, mkdir, open, readdir, readFile, rm, rmdir, stat, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { ServiceError } from '../service-error.ts'
import type { Settings } from '../settings/settings.ts'

/** Paths of the files in a data folder. */
export interface DataFolder {
  readonly path: string
  readonly lock: string
  /** Names the owner of the lock, for messages. */
  readonly holder: string
  readonly database: string
  readonly rulesCache: string
  readonly secret: string
  readonly alerts: string
  /** Last known number of nodes that share the limits. */
  readonly nodeCount: string
}

export function dataFolder(path: string): DataFolder {
  const at = (name: string): string => join(resolve(path), name)
  return {
    path: resolve(path),
    lock: at('lock'),
    holder: at('lock-holder'),
    database: at('config.db'),
    rulesCache: at('last-good-config'),
    secret: at('secret'),
    alerts: at('alerts.json'),
    nodeCount: at('node-count'),
  }
}

/** URL of the configuration database. May contain a password. */
export function databaseAddress({ databaseUrl }: Pick<Settings, 'databaseUrl'>, { database }: DataFolder): string {
  return databaseUrl ?? `sqlite:${database}`
}

/** SQLite error code: another process has the lock. */
const SQLITE_BUSY = 5

/** Only the user of the service may read the files: they contain secrets and hashes of keys. */
const PRIVATE_MODE = 0o600

/** A data folder that this process has locked. */
export interface LockedFolder {
  unlock(): Promise<void>
  /**
   * After a failed start: removes the folder and the parents that were created for it. Does nothing if the folder
   * existed before. Call it after {@link LockedFolder.unlock}.
   */
  removeIfNew(): Promise<void>
}

/**
 * Locks a data folder for this process; creates it if it is missing.
 *
 * It is a lock of the operating system, on an empty file that SQLite opens. It ends with the process, however that
 * ends, so there are no stale locks. A process id in a file would not do: in containers, processes have the same few
 * ids.
 *
 * @throws ServiceError `SLUICE_SERVICE_DATA_DIR_IN_USE` if another process has it, `SLUICE_SERVICE_DATA_DIR_UNUSABLE`
 * if it is not writable
 */
export async function lockDataFolder(folder: DataFolder): Promise<LockedFolder> {
  let lock: DatabaseSync | undefined
  let firstMade: string | undefined
  const removeIfNew = async (): Promise<void> => {
    if (firstMade !== undefined) await removeFolders(folder.path, firstMade)
  }
  try {
    firstMade = await makeFolder(folder.path)
    // SQLite would create it readable for all users.
    await (await open(folder.lock, 'a', PRIVATE_MODE)).close()
    lock = new DatabaseSync(folder.lock)
    lock.exec('PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE')
    await makePrivate(folder)
    await writeFile(folder.holder, `process ${process.pid} on ${hostname()}`, { mode: PRIVATE_MODE })
  } catch (error) {
    lock?.close()
    await removeIfNew()
    if ((error as { readonly errcode?: unknown }).errcode === SQLITE_BUSY) throw await inUse(folder)
    throw unusable(folder, error as Error)
  }
  return {
    async unlock() {
      await rm(folder.holder, { force: true })
      lock.close()
    },
    removeIfNew,
  }
}

/**
 * Creates a folder and its missing parents. Returns the first one created; undefined if the folder exists. Not by
 * `recursive` of `mkdir`, which never ends where the parent exists and no folder can be created, as in /proc.
 */
async function makeFolder(path: string): Promise<string | undefined> {
  const create = (): Promise<void> => mkdir(path, { mode: 0o700 })
  try {
    await create()
    return path
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' && (await stat(path)).isDirectory()) return undefined
    if (code !== 'ENOENT' || dirname(path) === path) throw error
  }
  const first = await makeFolder(dirname(path))
  await create()
  return first ?? path
}

/**
 * Makes the files of the service private, because older versions left some readable. Other files in the folder stay as
 * they are.
 */
async function makePrivate({ path, ...files }: DataFolder): Promise<void> {
  const names = Object.values(files).map((file) => basename(file))
  for (const found of await readdir(path)) {
    // Journals, copies of further threads and temporary files have the same prefix.
    const isOurs = names.some((name) => found === name || found.startsWith(`${name}-`) || found.startsWith(`${name}.`))
    if (isOurs) await chmod(join(path, found), PRIVATE_MODE).catch(() => undefined)
  }
}

/** Removes a folder with its content, and its empty parents up to `first`. */
async function removeFolders(path: string, first: string): Promise<void> {
  await rm(path, { recursive: true, force: true })
  for (let above = dirname(path); above.length >= first.length; above = dirname(above)) {
    try {
      await rmdir(above)
    } catch {
      // It is in use by now.
      return
    }
  }
}

async function inUse({ path, holder }: DataFolder): Promise<ServiceError> {
  const who = await readFile(holder, 'utf8').catch(() => 'another process')
  return new ServiceError('SLUICE_SERVICE_DATA_DIR_IN_USE', {
    received: `${path}, which ${who} uses`,
    expected: 'a folder that no other process uses',
    action: 'Stop the other process, or use another folder: SLUICE_DATA_DIR=.sluice-2',
  })
}

function unusable({ path }: DataFolder, cause: Error): ServiceError {
  return new ServiceError('SLUICE_SERVICE_DATA_DIR_UNUSABLE', {
    received: `${path} (${cause.message})`,
    expected: 'a writable folder',
    action: 'Let this user write there, or set SLUICE_DATA_DIR to another folder.',
    cause,
  })
}
