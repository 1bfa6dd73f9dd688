// Sends the requests of examples/http to a service, in order, and compares the answers with those that the file shows.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '@sluice/testing/servers'
import { describe, expect, it, onTestFinished } from 'vitest'
import { commandsOf } from './document-commands.ts'
import { ExampleProcess } from './examples-process.ts'
import { readHttpCollection } from './http-collection.ts'
import { repositoryRoot } from './workspace.ts'

const collection = readFileSync(join(repositoryRoot, 'examples/http/walk-through.http'), 'utf8')

/** Starts the service as `npm start` does, in a data folder of its own; it ends with the test. */
async function startService(): Promise<{ readonly sluice: string; readonly key: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-http-'))
  const port = await freePort()
  const service = new ExampleProcess({
    command: process.execPath,
    args: ['--conditions=source', join(repositoryRoot, 'apps/service/src/main.ts')],
    cwd: repositoryRoot,
    env: { PORT: String(port), SLUICE_DATA_DIR: join(folder, 'data'), SLUICE_DRAIN_MS: '0' },
  })
  onTestFinished(async () => {
    await service.stop('SIGTERM')
    rmSync(folder, { recursive: true, force: true })
  })
  const key = await service.printed(/(slk_\w+)/)
  const sluice = `http://127.0.0.1:${port}`
  const isReady = (): Promise<boolean> =>
    fetch(`${sluice}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    )
  await expect.poll(isReady, { timeout: 20_000 }).toBe(true)
  return { sluice, key }
}

describe('the HTTP collection', () => {
  it('gets the answers that it shows', async () => {
    const requests = readHttpCollection(collection, await startService())
    expect(requests.length).toBeGreaterThan(8)
    for (const { name, method, url, headers, body, comments } of requests) {
      const [, status, shown] = /^(\d+) (\{.*\})$/.exec(comments.at(-1) ?? '') ?? []
      expect(shown, name).toBeDefined()
      const response = await fetch(url, { method, headers, ...(body === undefined ? {} : { body }) })
      expect([name, response.status]).toEqual([name, Number(status)])
      expect(await response.json(), name).toMatchObject(JSON.parse(shown!))
    }
  })

  it('has the calls of the guide, in its order', () => {
    const guide = readFileSync(join(repositoryRoot, 'docs/guides/get-started/service.md'), 'utf8')
    const calls = commandsOf(guide)
      .filter(({ command }) => command.startsWith('curl'))
      .map(({ command }) => {
        const data = /-d '([^']*)'/.exec(command)?.[1]
        const method = /-X ([A-Z]+)/.exec(command)?.[1] ?? (data === undefined ? 'GET' : 'POST')
        const [, path] = /\$SLUICE([^\s"]+)/.exec(command)!
        return { method, path, body: data && (JSON.parse(data) as unknown) }
      })
    const requests = readHttpCollection(collection, { sluice: '' })
    const collected = requests.map(({ method, url, body }) => ({ method, path: url, body: body && JSON.parse(body) }))
    // It goes on to a denial, which the guide leaves out.
    const added = requests.filter(({ name }) => /four tokens|denied/.test(name))
    expect(added).toHaveLength(2)
    expect(collected.filter((_, index) => !added.includes(requests[index]!))).toEqual(calls)
  })
})

describe('readHttpCollection', () => {
  it('reads variables, names, comments, headers and bodies', () => {
    const text =
      '@host = h:1\n\n### One\n# a\n# b\nPOST http://{{host}}/x\nA: b: c\n\n{\n}\n\n### Two\nGET http://{{host}}/\n'
    expect(readHttpCollection(text, { host: 'other' })).toEqual([
      {
        name: 'One',
        method: 'POST',
        url: 'http://other/x',
        headers: { A: 'b: c' },
        body: '{\n}',
        comments: ['a', 'b'],
      },
      { name: 'Two', method: 'GET', url: 'http://other/', headers: {}, body: undefined, comments: [] },
    ])
  })

  it('rejects what is no request, and undeclared variables', () => {
    expect(() => readHttpCollection('### One\nget x\n')).toThrow('"One" has no line such as')
    expect(() => readHttpCollection('### One\nGET {{x}}\n')).toThrow('{{x}} is not declared')
  })
})
