#!/usr/bin/env node
// In the repository the command runs from its sources, on the Node that the repository pins; installed, from the bundle
// in the package. Old versions of Node parse this file, so that they can print what to do.
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The first version that undici supports. `node:sqlite` needs 22.13. */
const OLDEST_NODE = '22.19.0'

const source = fileURLToPath(new URL('../src/main.ts', import.meta.url))
const runner = new URL('../../../tools/run.mjs', import.meta.url)

if (existsSync(source) && existsSync(runner)) {
  process.argv.splice(2, 0, source)
  await import(runner.href)
} else if (process.versions.node.localeCompare(OLDEST_NODE, 'en', { numeric: true }) < 0) {
  const quoted = (argument) => (/^[\w./:=@,+-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", "'\\''")}'`)
  const command = [fileURLToPath(import.meta.url), ...process.argv.slice(2)].map(quoted).join(' ')
  process.stderr.write(
    `sluice: SLUICE_CLI_NODE_TOO_OLD: this is Node ${process.versions.node}; Node ${OLDEST_NODE} or later is needed. ` +
      `Install it from https://nodejs.org, or run: npx --yes --package=node@24 -- node ${command}\n`,
  )
  process.exitCode = 1
} else {
  hideExperimentalWarnings()
  await import(new URL('../dist/programs/cli.js', import.meta.url).href)
}

/** `node:sqlite` works, but Node 22 warns about it. Other warnings are printed as before. */
function hideExperimentalWarnings() {
  const listeners = process.listeners('warning')
  process.removeAllListeners('warning')
  process.on('warning', (warning) => {
    if (warning.name === 'ExperimentalWarning') return
    for (const listener of listeners) listener(warning)
  })
}
