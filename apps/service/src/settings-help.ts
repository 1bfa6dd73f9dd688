import { SETTING_NAMES, SETTING_TABLE } from './setting-table.ts'

const WIDTH = 30

/** No setting: a start that makes a key each time must not be possible by environment or file. */
export const NEW_ADMIN_KEY = '--new-admin-key'

/** What `--help` prints: every setting by flag and variable, and what it does. */
export function settingsHelp(): string {
  const lines = SETTING_NAMES.flatMap((name) => {
    const { flag, variable, argument, help } = SETTING_TABLE[name]
    const usage = `  --${flag}${argument === '' ? '' : ` ${argument}`}`
    return [`${usage.padEnd(WIDTH)} ${help}`, `${' '.repeat(WIDTH)} Environment: ${variable}. File: service.${name}`]
  })
  return [
    'Usage: npm start -- [settings]',
    '',
    'A flag goes before the environment, and that before "service" in the file that --config names.',
    'Without any of them everything is kept in this process and in the folder .sluice.',
    '',
    ...lines,
    `${`  ${NEW_ADMIN_KEY}`.padEnd(WIDTH)} Make another API key with the role admin in the database, print it and end: for a lost key.`,
    `${'  --help'.padEnd(WIDTH)} Print this.`,
    '',
    'Only in a file: service.alerts, when somebody should look at something (docs/guides/alerts.md).',
  ].join('\n')
}
