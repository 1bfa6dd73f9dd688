import { existsSync } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import type { ConfigStore } from '@sluice/config-store'
import { openConfigStore } from '@sluice/config-store'
import type { Random } from '@sluice/core'
import type { Logger } from '@sluice/runtime'
import { bytesFrom } from '../clock-and-random.ts'
import { ServiceError } from '../service-error.ts'
import type { Settings } from '../settings/settings.ts'
import type { DataFolder } from './data-folder.ts'
import { databaseAddress } from './data-folder.ts'

const TOKEN = /^slk_[0-9A-Za-z]{12}_[0-9A-Za-z]{43}$/
const ID_LENGTH = 12
const SECRET_LENGTH = 43

/** Enough for both parts of a token after the other characters of base64 are removed. */
const DRAWN_BYTES = 64

const FIRST_START = { name: 'first start' }
const RECOVERY = { name: 'key recovery' }

export interface FirstKeyParts {
  /** File that the key is read from or written to; undefined: the key is shown. */
  readonly file: string | undefined
  readonly secureRandom: Random
  readonly log: Logger
}

/**
 * Creates the first API key, with the role admin, unless there has ever been one. Returns its token; undefined if there
 * was a key already. Several nodes may do this at the same time: only one key is created.
 *
 * The file is written before the key is created. If the process dies in between, the next start creates the key in the
 * file.
 */
export async function createFirstKey(
  config: ConfigStore,
  { file, secureRandom, log }: FirstKeyParts,
): Promise<string | undefined> {
  const { apiKeys } = config
  const create = async (given?: string): Promise<string | undefined> =>
    (await apiKeys.createFirst({ name: 'first', role: 'admin' }, FIRST_START, given))?.token
  if (file === undefined) return await create()
  const isFirst = (await apiKeys.list({ limit: 1 })).items.length === 0
  const found = await readKeyFile(file)
  if (found === undefined && !isFirst) return undefined
  const token = found ?? (await writeNewKey(file, secureRandom))
  const created = await create(token)
  if (created !== undefined || (await apiKeys.verify(token)) !== undefined) return created
  log.warn('the key in the admin key file is not valid: there are other API keys already', { file })
  // Another node created a key first, with another file.
  if (found === undefined) await rm(file, { force: true })
  return undefined
}

/** A new API key with the role admin. */
export interface RecoveredKey {
  readonly token: string
  /** Its file; undefined: it must be shown. */
  readonly file: string | undefined
}

/**
 * Creates another API key with the role admin, with access to the database only, to replace a lost one. The service may
 * be running. With a key file, creates the key in it; a missing file is written.
 *
 * @throws ServiceError `SLUICE_SERVICE_DATA_DIR_UNUSABLE` if the data folder has no database,
 * `SLUICE_SERVICE_ADMIN_KEY_FILE_UNUSABLE` if the key file cannot be used
 */
export async function recoverAdminKey(
  settings: Settings,
  folder: DataFolder,
  secureRandom: Random,
): Promise<RecoveredKey> {
  const { databaseUrl, adminKeyFile: file } = settings
  if (databaseUrl === undefined && !existsSync(folder.database)) {
    throw new ServiceError('SLUICE_SERVICE_DATA_DIR_UNUSABLE', {
      received: `${folder.path}, which has no config.db`,
      expected: 'the data folder of a service that has been started before',
      action: 'Set --data-dir, or --database-url.',
    })
  }
  const config = await openConfigStore(databaseAddress(settings, folder))
  try {
    const found = file === undefined ? undefined : await readKeyFile(file)
    if (found !== undefined && (await config.apiKeys.verify(found)) !== undefined) return { token: found, file }
    const token = found ?? (file === undefined ? undefined : await writeNewKey(file, secureRandom))
    const issued = await config.apiKeys.create({ name: 'recovered', role: 'admin' }, RECOVERY, token)
    return { token: issued.token, file }
  } finally {
    await config.close()
  }
}

/**
 * The token in a file; undefined if there is no file.
 *
 * @throws ServiceError `SLUICE_SERVICE_ADMIN_KEY_FILE_UNUSABLE` if it cannot be read or contains no token
 */
export async function readKeyFile(path: string): Promise<string | undefined> {
  let text: string
  try {
    text = (await readFile(path, 'utf8')).trim()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    throw unusable(`${path}, which cannot be read (${message})`, error)
  }
  if (!TOKEN.test(text)) throw unusable(`${path}, which holds something else (hidden)`)
  return text
}

/** Writes a random token to a new file that only this user can read. */
async function writeNewKey(path: string, random: Random): Promise<string> {
  const token = drawToken(random)
  try {
    await writeFile(path, `${token}\n`, { mode: 0o600, flag: 'wx' })
    return token
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    // Another node that shares the file wrote it first.
    const theirs = code === 'EEXIST' ? await readKeyFile(path) : undefined
    if (theirs !== undefined) return theirs
    throw unusable(`${path}, which cannot be written (${message})`, error)
  }
}

function drawToken(random: Random): string {
  const digits = Buffer.from(bytesFrom(random, DRAWN_BYTES))
    .toString('base64')
    .replaceAll(/[^0-9A-Za-z]/g, '')
  return `slk_${digits.slice(0, ID_LENGTH)}_${digits.slice(ID_LENGTH, ID_LENGTH + SECRET_LENGTH)}`
}

function unusable(received: string, cause?: unknown): ServiceError {
  return new ServiceError('SLUICE_SERVICE_ADMIN_KEY_FILE_UNUSABLE', {
    received,
    expected: 'a file with one API key, slk_<12 letters or digits>_<43 letters or digits>, or a place to write one to',
    action: 'Correct the path or the content, or remove the file to have a key written.',
    ...(cause === undefined ? {} : { cause }),
  })
}
