#!/usr/bin/env node
// In the repository the command runs from its sources, on the Node that the repository pins; built, from dist.
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const source = fileURLToPath(new URL('../src/main.ts', import.meta.url))
const runner = new URL('../../../tools/run.mjs', import.meta.url)

if (existsSync(source) && existsSync(runner)) {
  process.argv.splice(2, 0, source)
  await import(runner.href)
} else {
  await import(new URL('../dist/main.js', import.meta.url).href)
}
