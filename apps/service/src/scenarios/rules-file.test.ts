import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RunningNode } from '../service.fixture.ts'
import { startRealService } from '../service.fixture.ts'
import { readSettings } from '../settings.ts'

// Rules and settings are in a file that is changed while the service runs.

const withLimit = (limit: number): string =>
  `rules:\n  - { resource: /x, dimension: user, limit: ${limit}, window: 1m }\n`

interface Scene {
  readonly node: RunningNode
  /** Puts another file in the place of the one that is there. */
  replace(text: string): Promise<void>
  /** What health says of the rules. */
  health(): Promise<string>
}

async function start(text: string): Promise<Scene> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-rules-file-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'sluice.yaml')
  await writeFile(path, text)
  const { rulesFile, fileSettings } = readSettings({ args: ['--config', path], environment: {}, cores: 1 })
  const node = await startRealService({ rulesFile, fileSettings })
  onTestFinished(() => node.stop())
  const replace = async (other: string): Promise<void> => {
    await writeFile(`${path}.new`, other)
    await rename(`${path}.new`, path)
  }
  const health = async (): Promise<string> => {
    const { checks } = (await (await fetch(`${node.origin}/readyz`)).json()) as {
      readonly checks: readonly { readonly name: string; readonly detail: string }[]
    }
    return checks.find(({ name }) => name === 'config')!.detail
  }
  return { node, replace, health }
}

/** The file is looked at by hint, or after 5 seconds. */
const SOON = { timeout: 20_000 }

describe('a file of rules that is changed while the service runs', () => {
  it('and cannot be used leaves what was in force, and health does not call that up to date', async () => {
    const { replace, health } = await start(withLimit(5))
    expect(await health()).toBe('version 1 from file, up to date')
    await replace(withLimit(6))
    await expect.poll(health, SOON).toBe('version 2 from file, up to date')
    await replace(withLimit(-1))
    await expect.poll(health, SOON).toBe('version 2 from file, while version 3 cannot be used, see the log')
    await replace(withLimit(7))
    await expect.poll(health, SOON).toBe('version 3 from file, up to date')
  })

  it('and has other settings is followed, and the log says once that these need a start, or would stop it', async () => {
    const { node, replace, health } = await start(`service: { port: 8081 }\n${withLimit(5)}`)
    const settings = (): readonly unknown[] =>
      node.log.flatMap(({ level, message, settings: names }) =>
        message.startsWith('settings in the file') ? [[level, names]] : [],
      )
    await replace(`service: { port: 8082, threads: 2 }\n${withLimit(6)}`)
    await expect.poll(health, SOON).toMatch(/^version 2 /)
    await expect.poll(settings, SOON).toEqual([['warn', ['port', 'threads']]])
    await replace(`service: { prot: 8081 }\n${withLimit(7)}`)
    await expect.poll(health, SOON).toMatch(/^version 3 /)
    await expect.poll(settings, SOON).toEqual([
      ['warn', ['port', 'threads']],
      ['error', ['port', 'prot']],
    ])
  })
})
