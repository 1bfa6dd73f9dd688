import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ReadinessAnswer } from '@sluice/contract'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RunningNode } from '../service.fixture.ts'
import { startRealService } from '../service.fixture.ts'
import { readSettings } from '../settings/settings.ts'

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
  it('and cannot be used leaves what was in force, and the service is degraded until it can be', async () => {
    const { node, replace, health } = await start(withLimit(5))
    const status = async (): Promise<unknown> => {
      const { status: said, reasons } = (await (await fetch(`${node.origin}/readyz`)).json()) as ReadinessAnswer
      return [said, ...reasons.map(({ code, message }) => `${code}: ${message}`)]
    }
    expect([await health(), await status()]).toEqual([
      expect.stringMatching(/^version 1 from file, confirmed \d+\.\d s ago$/),
      ['ready'],
    ])
    await replace(withLimit(6))
    await expect.poll(health, SOON).toMatch(/^version 2 from file, confirmed /)
    await replace(withLimit(-1))
    const refused = 'version-refused: Version 3 cannot be used. Version 2 stays active. '
    await expect.poll(status, SOON).toEqual(['degraded', expect.stringMatching(`^${refused}`)])
    expect(await health()).toMatch(/^version 2 from file, /)
    await replace(withLimit(7))
    await expect.poll(status, SOON).toEqual(['ready'])
    expect(await health()).toMatch(/^version 3 from file, /)
  })

  it('and uses an undeclared dimension makes the service degraded until it is corrected or declared', async () => {
    const { node, replace, health } = await start(withLimit(5).replace('user', 'usr'))
    const status = async (): Promise<unknown> => {
      const { status: said, reasons } = (await (await fetch(`${node.origin}/readyz`)).json()) as ReadinessAnswer
      return [said, ...reasons.map(({ code, message }) => `${code}: ${message}`)]
    }
    const undeclared =
      /^dimension-undeclared: .*: "usr" \(did you mean "user"\?\)\. Correct them, or list them under "dimensions"/
    expect(await status()).toEqual(['degraded', expect.stringMatching(undeclared)])
    expect(node.log).toMatchObject([{ level: 'warn', dimension: 'usr', paths: ['/rules/0/dimension'], version: 1 }])
    await replace(`dimensions: [usr]\n${withLimit(5).replace('user', 'usr')}`)
    await expect.poll(health, SOON).toMatch(/^version 2 from file/)
    expect(await status()).toEqual(['ready'])
    await replace(withLimit(6))
    await expect.poll(health, SOON).toMatch(/^version 3 from file/)
    expect(await status()).toEqual(['ready'])
  })

  it('with other settings is followed, and the log says once that they need a restart or would fail it', async () => {
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
