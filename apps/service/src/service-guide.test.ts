import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { READINESS_REASONS } from '@sluice/contract'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RunningService } from './service.fixture.ts'
import { startService } from './service.fixture.ts'
import { SETTING_NAMES, SETTING_TABLE } from './setting-table.ts'

const guide = readFileSync(join(import.meta.dirname, '../../../docs/guides/service.md'), 'utf8')

/** The rows of the table below a heading, as lists of machineNumbers. */
function tableBelow(heading: string): readonly (readonly string[])[] {
  const [, section = ''] = guide.split(`\n## ${heading}\n`)
  const [table = ''] = /(?:^\|.*\n)+/m.exec(section) ?? []
  const rows = table.trimEnd().split('\n').slice(2)
  return rows.map((row) => row.slice(2, -2).split(' | '))
}

describe('the guide to the service', () => {
  let service: RunningService

  beforeAll(async () => {
    service = await startService()
  })

  afterAll(() => service.stop())

  it('has every setting, by its names, with what --help says of it', () => {
    const settings = SETTING_NAMES.map((name) => {
      const { variable, flag, argument, help } = SETTING_TABLE[name]
      return [`\`${name}\``, `\`${variable}\``, `\`--${flag}${argument === '' ? '' : ` ${argument}`}\``, help]
    })
    expect(tableBelow('Settings')).toEqual(settings)
  })

  it('has every reason for which the service is degraded or not ready, and no other', () => {
    const [, codes = ''] = guide.split('\n| code | meaning | status |\n|---|---|---|\n')
    const rows = [...(codes.split('\n\n')[0] ?? '').matchAll(/^\| `([\w-]+)` \| (.+?) \| /gm)]
    const told = rows.map(([, code, meaning]): [string, string] => [code!, meaning!])
    expect(Object.fromEntries(told)).toEqual(READINESS_REASONS)
  })

  it('has every metric, and no other', async () => {
    const text = await (await fetch(`${service.origin}/metrics`)).text()
    const shown = [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => `\`${name}\``)
    expect(shown.length).toBeGreaterThan(30)
    expect(tableBelow('Metrics, logs, traces').map(([name]) => name)).toEqual(expect.arrayContaining(shown))
    expect(shown).toEqual(expect.arrayContaining(tableBelow('Metrics, logs, traces').map(([name]) => name)))
  })
})
