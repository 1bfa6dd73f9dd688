import { readFileSync } from 'node:fs'

/** Version of the service, as its package.json has it. */
export const VERSION: string = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version
