import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { apiReferenceFile, renderApiReference } from './api-reference.ts'
import { gatewayReferenceFile, renderGatewayReference } from './gateway-reference.ts'
import {
  metricsIn,
  metricsReferenceFile,
  renderMetricsReference,
  renderSettingsReference,
  serviceMetrics,
  settingsReferenceFile,
} from './service-reference.ts'
import { repositoryRoot } from './workspace.ts'
import { wrapped } from './wrap-text.ts'

function read(path: string): string {
  return readFileSync(join(repositoryRoot, path), 'utf8')
}

function headingsOf(text: string): readonly (string | undefined)[] {
  return [...text.matchAll(/^#{2,3} `(.+)`$/gm)].map(([, heading]) => heading)
}

describe('the generated pages', () => {
  it.each([
    [apiReferenceFile, renderApiReference],
    [settingsReferenceFile, renderSettingsReference],
    [metricsReferenceFile, renderMetricsReference],
    [gatewayReferenceFile, renderGatewayReference],
  ])('%s is up to date; after a change run npm run api-docs', async (file, render) => {
    expect(read(file)).toBe(await render())
  })
})

describe('the HTTP API reference', () => {
  it('has every operation of the table, once', async () => {
    const source = join(repositoryRoot, 'packages/contract/src/index.ts')
    const { OPERATIONS } = (await import(source)) as {
      readonly OPERATIONS: Readonly<Record<string, { readonly method: string; readonly path: string }>>
    }
    const operations = Object.values(OPERATIONS).map(({ method, path }) => `${method} ${path}`)
    expect(headingsOf(await renderApiReference()).toSorted()).toEqual(operations.toSorted())
  })
})

describe('the settings reference', () => {
  it('has every setting of the table, once', async () => {
    const { SETTING_NAMES } = (await import(join(repositoryRoot, 'apps/service/src/settings/setting-table.ts'))) as {
      readonly SETTING_NAMES: readonly string[]
    }
    expect(SETTING_NAMES.length).toBeGreaterThan(30)
    expect(headingsOf(await renderSettingsReference())).toEqual(SETTING_NAMES)
  })
})

describe('the metrics reference', () => {
  it('has every metric of a started service, once, with its labels', async () => {
    const service = await serviceMetrics()
    const text = await renderMetricsReference()
    const listed = [...text.matchAll(/^- `(\w+)` \((?:counter|gauge|histogram)/gm)]
    expect(listed.map(([, name]) => name).toSorted()).toEqual(service.map(({ name }) => name).toSorted())
    expect(text).toContain('- `ratelimit_blocks_total` (counter by `dimension`, `origin`): ')
  })

  it('reads name, type, help and label names from the text format', () => {
    const page = [
      '# HELP a_total Calls.\n# TYPE a_total counter\na_total{path="/x",result="denied"} 1',
      '# HELP b_ms Time.\n# TYPE b_ms histogram\nb_ms_bucket{le="1"} 0\nb_ms_sum 0\n# EOF\n',
    ].join('\n')
    expect(metricsIn(page)).toEqual([
      { name: 'a_total', type: 'counter', help: 'Calls.', labels: ['path', 'result'] },
      { name: 'b_ms', type: 'histogram', help: 'Time.', labels: [] },
    ])
  })
})

describe('wrapped', () => {
  it('breaks lines at 120 columns, between words', () => {
    const text = wrapped(`- ${'word '.repeat(60)}end`, '  ')
    expect(text.split('\n').every((line) => line.length <= 120)).toBe(true)
    expect(text.split('\n').slice(1)).toEqual(expect.arrayContaining([expect.stringMatching(/^ {2}word/)]))
    expect(text.replaceAll(/\s+/g, ' ')).toBe(`- ${'word '.repeat(60)}end`)
  })
})
