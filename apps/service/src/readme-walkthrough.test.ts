// What the README says of the service is tried out: the message of the start, and every call of the walk through the
// API.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { testSettings } from './service.fixture.ts'
import { firstKeyMessage, startupMessage } from './startup-message.ts'

const run = promisify(execFile)

const readme = readFileSync(join(import.meta.dirname, '../../../README.md'), 'utf8')

interface Started {
  readonly origin: string
  readonly key: string
}

/** Starts the service as `npm start` does, in a folder of its own; it ends with the test. */
async function startProcess(): Promise<Started> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-walk-'))
  const env = { PORT: '0', SLUICE_DATA_DIR: folder, SLUICE_DRAIN_MS: '0' }
  const main = join(import.meta.dirname, 'main.ts')
  const child = spawn(process.execPath, ['--conditions=source', main], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(async () => {
    const ended = once(child, 'close')
    child.kill('SIGTERM')
    await ended
    rmSync(folder, { recursive: true, force: true })
  })
  let output = ''
  for await (const text of child.stdout.setEncoding('utf8')) {
    output += text
    const [, origin] = /curl -i (http:\/\/[\d.:]+)\//.exec(output) ?? []
    const [key] = /slk_\w+/.exec(output) ?? []
    if (origin !== undefined && key !== undefined) return { origin, key }
  }
  throw new Error(`It ended: ${output}`)
}

/** What a call answers. Without curl on the machine, the same request is sent by hand. */
async function call(line: string, { origin, key }: Started): Promise<unknown> {
  try {
    const { stdout } = await run('sh', ['-c', `SLUICE=${origin}\nKEY=${key}\n${line}`])
    return JSON.parse(stdout)
  } catch (error) {
    if ((error as { readonly code?: unknown }).code !== 127) throw error
  }
  const filled = line.replaceAll('$SLUICE', origin).replaceAll('$KEY', key)
  const [, url = ''] = /(http:[^\s"]+)/.exec(filled) ?? []
  const [, body] = / -d '([^']*)'/.exec(filled) ?? []
  const [, method = body === undefined ? 'GET' : 'POST'] = / -X (\w+)/.exec(filled) ?? []
  const headers = [...filled.matchAll(/ -H ["']([^"']+)["']/g)].map(
    ([, text = '']) => text.split(': ') as [string, string],
  )
  const response = await fetch(url, { method, headers, ...(body === undefined ? {} : { body }) })
  return await response.json()
}

describe('the README', () => {
  it('shows what the first start prints', () => {
    const [, shown] = /```text\n(Admin API key[\s\S]*?)\n```/.exec(readme) ?? []
    const settings = testSettings({ port: 8080 })
    const rules = { enforcedVersion: 1, source: 'database' } as const
    const printed = [
      firstKeyMessage('slk_...', undefined),
      startupMessage({ settings, port: 8080, rules, reasons: [] }),
    ]
    expect(shown).toBe(printed.join('\n'))
  })

  it('walks through the API, and gets the answers that it shows', async () => {
    const [, after = ''] = readme.split('\n## Walk through the API\n')
    const [section = ''] = after.split('\n## ')
    const steps = [...section.matchAll(/```sh\n(curl .*)\n```\n\n```json\n([\s\S]*?)\n```/g)]
    expect(steps).toHaveLength(section.split('```sh\n').length - 2)
    expect(steps.length).toBeGreaterThanOrEqual(7)
    const started = await startProcess()
    for (const [, line = '', answer = ''] of steps) {
      expect(await call(line, started), line).toMatchObject(JSON.parse(answer))
    }
  })
})
