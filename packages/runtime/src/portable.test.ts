import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

/** Imports a module where every Node module is rejected. */
function program(path: string): string {
  return `
    import { registerHooks } from 'node:module'
    registerHooks({
      resolve(specifier, context, next) {
        const found = next(specifier, context)
        if (found.url.startsWith('node:')) throw new Error('a Node module: ' + specifier)
        return found
      },
    })
    const names = await import(${JSON.stringify(path)}).then(Object.keys, (error) => error.message)
    console.log(JSON.stringify(names))`
}

async function namesIn(file: string): Promise<unknown> {
  const flags = ['--conditions=source', '--input-type=module', '--eval', program(join(import.meta.dirname, file))]
  const { stdout } = await promisify(execFile)(process.execPath, flags, { cwd: import.meta.dirname })
  return JSON.parse(stdout)
}

it('runs without any Node module', async () => {
  expect(await namesIn('portable.ts')).toContain('retry')
  expect(await namesIn('index.ts')).toMatch(/^a Node module: node:/)
})
