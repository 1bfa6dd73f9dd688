import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const PROGRAM = `
  import { registerHooks } from 'node:module'
  registerHooks({
    resolve(specifier, context, next) {
      const found = next(specifier, context)
      if (found.url.startsWith('node:')) throw new Error('a Node module: ' + specifier)
      return found
    },
  })
  delete globalThis.setImmediate
  const { createClient, retryFetch, limitedFetch } = await import('./index.ts')
  const answer = { allowed: true, remaining: 1 }
  const send = (url, { body }) => Promise.resolve(
    url.endsWith('/batch')
      ? Response.json({ answers: JSON.parse(body).requests.map(() => answer) })
      : Response.json(answer),
  )
  const client = createClient({ url: 'http://limits', fetch: send })
  const checks = [client.check({ resource: '/a' }), client.check({ resource: '/b' })]
  const limiter = { acquire: () => Promise.resolve({ allowed: true, retryAfterMs: 0 }) }
  const both = retryFetch({ fetch: limitedFetch({ limiter, fetch: () => Promise.resolve(new Response('ok')) }) })
  console.log(JSON.stringify([await Promise.all(checks), await (await both('http://api/')).text()]))`

it('works without Node: no module of it, and no setImmediate', async () => {
  const flags = ['--conditions=source', '--input-type=module', '--eval', PROGRAM]
  const { stdout } = await promisify(execFile)(process.execPath, flags, { cwd: join(import.meta.dirname) })
  const answer = { allowed: true, remaining: 1 }
  expect(JSON.parse(stdout)).toEqual([[answer, answer], 'ok'])
})
