import { mkdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { ServiceError } from '../service-error.ts'

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

/** What SQLite says when somebody else has the lock. */
const SQLITE_BUSY = 5

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
    lock = new DatabaseSync(folder.lock)
    lock.exec('PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE')
    await writeFile(folder.holder, `process ${process.pid} on ${hostname()}`, { mode: 0o600 })
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
