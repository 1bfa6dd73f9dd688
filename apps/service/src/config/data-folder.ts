import { chmod, mkdir, open, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { ServiceError } from '../service-error.ts'
import type { Settings } from '../settings.ts'

/** The files in a data folder. */
export interface DataFolder {
  readonly path: string
  readonly lock: string
  /** Says who has the lock; for messages only. */
  readonly holder: string
  readonly database: string
  readonly rulesCache: string
  readonly secret: string
  readonly alerts: string
  /** How many nodes shared the limits when it was last known. */
  readonly nodeCount: string
}

/** Where what is kept stands, in the folder `path`. */
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

/** The address of the configuration database. May hold a password. */
export function databaseAddress({ databaseUrl }: Pick<Settings, 'databaseUrl'>, { database }: DataFolder): string {
  return databaseUrl ?? `sqlite:${database}`
}

/** What SQLite says when somebody else has the lock. */
const SQLITE_BUSY = 5

/** Files are for the user of the service alone: there are hashes of keys and secrets in them. */
const PRIVATE_MODE = 0o600

/** A data folder in the hands of this process. */
export interface LockedFolder {
  /** Gives the folder back, with all that is in it. */
  unlock(): Promise<void>
  /**
   * Removes the folder and the folders above it that were made for it; does nothing when the folder was there before. Only for a
   * start that failed: nothing in it is worth keeping then. Call it after {@link LockedFolder.unlock}.
   */
  removeIfNew(): Promise<void>
}

/**
 * Takes a data folder for this process, and makes it when it is missing.
 *
 * The lock is one of the operating system, on a file that SQLite opens and nothing is ever written to: it ends with the process,
 * however that ends, so there is no stale one to recognise. A process number in a file could not say as much: in containers all
 * processes have the same few numbers.
 *
 * @throws ServiceError `SLUICE_SERVICE_DATA_DIR_IN_USE` when another process has it, `SLUICE_SERVICE_DATA_DIR_UNUSABLE` when
 * nothing can be written there
 */
export async function lockDataFolder(folder: DataFolder): Promise<LockedFolder> {
  let lock: DatabaseSync | undefined
  let firstMade: string | undefined
  const removeIfNew = async (): Promise<void> => {
    if (firstMade !== undefined) await removeFolders(folder.path, firstMade)
  }
  try {
    firstMade = await mkdir(folder.path, { recursive: true, mode: 0o700 })
    // SQLite would make it readable for everybody.
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
 * Takes the files of the service from other users, in a folder that may hold others: older versions left some readable. Files
 * that belong to somebody else stay as they are.
 */
async function makePrivate({ path, ...files }: DataFolder): Promise<void> {
  const names = Object.values(files).map((file) => basename(file))
  for (const found of await readdir(path)) {
    // Beside a file are its journals, the copies of further threads, and what is about to take its place.
    const isOurs = names.some((name) => found === name || found.startsWith(`${name}-`) || found.startsWith(`${name}.`))
    if (isOurs) await chmod(join(path, found), PRIVATE_MODE).catch(() => undefined)
  }
}

/** Removes a folder whole, and those above it up to `first` while they are empty. */
async function removeFolders(path: string, first: string): Promise<void> {
  await rm(path, { recursive: true, force: true })
  for (let above = dirname(path); above.length >= first.length; above = dirname(above)) {
    try {
      await rmdir(above)
    } catch {
      // Somebody else uses it by now.
      return
    }
  }
}

async function inUse({ path, holder }: DataFolder): Promise<ServiceError> {
  const who = await readFile(holder, 'utf8').catch(() => 'another process')
  return new ServiceError('SLUICE_SERVICE_DATA_DIR_IN_USE', {
    received: `${path}, which ${who} uses`,
    expected: 'a folder for this process alone',
    action: 'Stop the other one, or give this one a folder of its own: SLUICE_DATA_DIR=.sluice-2 npm start',
  })
}

function unusable({ path }: DataFolder, cause: Error): ServiceError {
  return new ServiceError('SLUICE_SERVICE_DATA_DIR_UNUSABLE', {
    received: `${path} (${cause.message})`,
    expected: 'a folder that files can be made in',
    action: 'Let this user write there, or name another folder with SLUICE_DATA_DIR.',
    cause,
  })
}
