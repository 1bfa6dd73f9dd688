import { Writable } from 'node:stream'
import { Logger, LogOutput } from '@sluice/runtime'
import { describe, expect, it } from 'vitest'
import type { GivenSettings } from '../settings/flags-environment-file.ts'
import { FileSettingsWatch } from './file-settings-watch.ts'

interface Line {
  readonly level: string
  readonly message: string
  readonly settings?: readonly string[]
  readonly problems?: readonly { readonly received: string; readonly expected: string }[]
}

function watch(fileSettings: GivenSettings): { readonly watch: FileSettingsWatch; readonly lines: Line[] } {
  const lines: Line[] = []
  const stream = new Writable({
    write(chunk, _encoding, done) {
      for (const line of String(chunk).trim().split('\n')) lines.push(JSON.parse(line))
      done()
    },
  })
  const log = new Logger(new LogOutput({ stream, nowMs: () => 0, level: 'info' }))
  return { watch: new FileSettingsWatch({ file: 'sluice.yaml', log, settings: { fileSettings } }), lines }
}

describe('settings in the file of the rules', () => {
  it('are logged once when they change, by name', () => {
    const { watch: settings, lines } = watch({ port: 8081, threads: 2 })
    settings.look({ port: 8081, threads: 2 })
    expect(lines).toEqual([])
    settings.look({ threads: 'auto', redisUrl: 'redis://:hunter2@one' })
    settings.look({ threads: 'auto', redisUrl: 'redis://:hunter2@one' })
    expect(lines).toMatchObject([
      {
        level: 'warn',
        message: 'settings in the file have changed: they apply from the next start',
        file: 'sluice.yaml',
        settings: ['port', 'threads', 'redisUrl'],
      },
    ])
    expect(JSON.stringify(lines)).not.toContain('hunter2')
  })

  it('are logged as errors when they are invalid, with the problem and without secrets', () => {
    const { watch: settings, lines } = watch({ port: 8081 })
    settings.look({ prot: 8081, webhookSecret: ['hunter2'] })
    expect(lines).toMatchObject([
      {
        level: 'error',
        message: 'settings in the file cannot be used: the next start would fail',
        settings: ['port', 'prot', 'webhookSecret'],
      },
    ])
    expect(JSON.stringify(lines[0]!.problems)).toMatch(/service\.prot.*did you mean/)
    expect(JSON.stringify(lines)).not.toContain('hunter2')
  })

  it('are logged when they are restored, and when all are removed', () => {
    const { watch: settings, lines } = watch({ port: 8081 })
    settings.look(undefined)
    settings.look({ port: 8081 })
    settings.look({ port: 8081 })
    expect(lines.map(({ level, settings: names }) => [level, names])).toEqual([
      ['warn', ['port']],
      ['info', undefined],
    ])
  })

  it('are no matter where there were none and are none', () => {
    const { watch: settings, lines } = watch({})
    settings.look(undefined)
    settings.look({})
    expect(lines).toEqual([])
  })
})
