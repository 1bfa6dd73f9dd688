// `node tools/run.mjs tools/keep-database.ts <file.sql> [main file of a service]`: starts a service on an empty data
// folder, changes rules, keys and entries, and writes its database as SQL. Run it before a migration is added:
// apps/service/src/scenarios/kept-database.test.ts starts the current service on every database that was kept.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { ExampleProcess } from './examples-process.ts'
import { runTool, ToolError } from './tool-error.ts'
import { repositoryRoot } from './workspace.ts'

const RULES = `rules:
  - { name: all, resource: '*', dimension: user, limit: 100, window: 1m }
  - { name: orders, resource: /orders/:id, dimension: user, limit: 10, window: 1m }
tiers:
  - { name: premium, multiplier: 5 }
`

/** Changes that leave something behind in every table that an operator fills. */
const COMMANDS = [
  ['rules', 'put', 'rules.yaml', '--force'],
  ['overrides', 'put', 'user', 'ada', '/orders/:id', '--limit', '500'],
  ['members', 'put', 'user', 'bob', 'premium'],
  ['blocks', 'put', 'user', 'mallory', '520w', '--reason', 'kept'],
  ['keys', 'create', 'dashboard', '--role', 'viewer'],
]

await runTool(async () => {
  const [file, main = 'apps/service/src/main.ts'] = process.argv.slice(2)
  if (file === undefined) {
    throw new ToolError('FILE_MISSING', 'Expected: node tools/run.mjs tools/keep-database.ts <file.sql> [main file].')
  }
  const folder = mkdtempSync(join(tmpdir(), 'sluice-kept-'))
  try {
    writeFileSync(join(folder, 'rules.yaml'), RULES)
    const token = await fill(folder, resolve(main))
    writeFileSync(file, `-- token: ${token}\n${dump(join(folder, 'data/config.db'))}`)
    console.log(`${file} written`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

/** @returns the admin API key */
async function fill(folder: string, main: string): Promise<string> {
  const flags = ['--conditions=source', '--disable-warning=ExperimentalWarning']
  const service = new ExampleProcess({
    command: process.execPath,
    args: [...flags, main],
    cwd: folder,
    env: { PORT: '0', SLUICE_DATA_DIR: join(folder, 'data'), SLUICE_DRAIN_MS: '0' },
  })
  const token = await service.printed(/(slk_\w+)/)
  const url = await service.printed(/(http:\S+)\/readyz/)
  await service.printed(/(Try it:)/)
  const cli = join(repositoryRoot, 'apps/cli/src/main.ts')
  for (const command of COMMANDS) {
    execFileSync(process.execPath, [...flags, cli, ...command, '--url', url], {
      cwd: folder,
      env: { ...process.env, SLUICE_API_KEY: token },
    })
  }
  await service.stop('SIGTERM')
  return token
}

/** The tables and rows of a SQLite file as SQL that creates them. */
function dump(path: string): string {
  const database = new DatabaseSync(path)
  const schema = database
    .prepare(
      "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid",
    )
    .all() as { type: string; name: string; sql: string }[]
  const rows = schema
    .filter(({ type }) => type === 'table')
    .flatMap(({ name }) => {
      const columns = database.prepare(`PRAGMA table_info("${name}")`).all() as { name: string }[]
      const values = columns.map((column) => `quote("${column.name}")`).join(" || ', ' || ")
      const lines = database.prepare(`SELECT ${values} AS line FROM "${name}"`).all() as { line: string }[]
      return lines.map(({ line }) => `INSERT INTO "${name}" VALUES (${line});`)
    })
  const [version] = Object.values(database.prepare('PRAGMA user_version').get()!)
  database.close()
  return [...schema.map(({ sql }) => `${sql};`), ...rows, `PRAGMA user_version = ${version};`, ''].join('\n')
}
