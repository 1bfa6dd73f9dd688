import { accessSync, constants, existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { formFinding } from './database-form.ts'
import type { Finding } from './finding.ts'
import { failed, ok } from './finding.ts'
import { reasonOf } from './shown-url.ts'

const READ = 'Look whether it is the data folder of the service, and whether this user may read it.'

/** How the data folder of the service stands, and the database in it. Changes nothing. */
export async function dataFolderFindings(dataDir: string): Promise<readonly Finding[]> {
  const folder = resolve(dataDir)
  if (!existsSync(folder)) return [newFolderFinding(folder)]
  const usable = folderFinding(folder)
  const database = join(folder, 'config.db')
  if (!existsSync(database)) return [usable, formFinding('database', 0)]
  try {
    return [usable, formFinding('database', await formOf(database))]
  } catch (error) {
    return [usable, failed('database', `${database} cannot be read (${reasonOf(error)})`, READ)]
  }
}

function newFolderFinding(folder: string): Finding {
  let parent = dirname(folder)
  while (!existsSync(parent)) parent = dirname(parent)
  if (isWritable(parent)) return ok('data folder', `${folder} is made when the service starts`)
  return failed('data folder', `${folder} cannot be made`, `Let this user write to ${parent}, or set SLUICE_DATA_DIR.`)
}

function folderFinding(folder: string): Finding {
  if (!isWritable(folder)) {
    const advice = 'Let the user that runs the service write there, or set SLUICE_DATA_DIR.'
    return failed('data folder', `${folder} cannot be written to`, advice)
  }
  const holder = join(folder, 'lock-holder')
  const user = existsSync(holder) ? `, in use by ${readFileSync(holder, 'utf8').slice(0, 200)}` : ''
  return ok('data folder', `${folder}${user}`)
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}

async function formOf(path: string): Promise<number> {
  // Loaded only when needed: Node warns of the module for as long as it is new.
  const { DatabaseSync } = await import('node:sqlite')
  const database = new DatabaseSync(path, { readOnly: true })
  try {
    const tables = database.prepare("SELECT name FROM sqlite_master WHERE name = 'schema_migrations'").all()
    if (tables.length === 0) return 0
    const newest = database.prepare('SELECT max(number) AS number FROM schema_migrations').get()
    return Number(newest?.['number'] ?? 0)
  } finally {
    database.close()
  }
}
