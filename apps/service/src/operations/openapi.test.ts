import type { Operation } from '@sluice/contract'
import { OPERATIONS } from '@sluice/contract'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startService } from '../service.fixture.ts'

interface Served {
  readonly openapi: string
  readonly info: { readonly version: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly operationId: string }>>>>
  readonly components: { readonly schemas: Readonly<Record<string, object>> }
}

describe('the document of the service', () => {
  it('is served, describes every operation, and refers to nothing that it does not have', async () => {
    const { origin, stop } = await startService()
    onTestFinished(stop)
    const response = await fetch(`${origin}/openapi.json`)
    expect(response.headers.get('content-type')).toBe('application/json')
    const text = await response.text()
    const document = JSON.parse(text) as Served
    expect([document.openapi, document.info.version]).toEqual(['3.1.0', '0.1.0'])
    const described = Object.values(document.paths).flatMap((path) =>
      Object.values(path).map(({ operationId }) => operationId),
    )
    expect(described.toSorted()).toEqual(Object.keys(OPERATIONS).toSorted())
    const names = new Set(Array.from(text.matchAll(/"#\/components\/schemas\/([^"/]+)/g), (match) => match[1]!))
    expect([...names].filter((name) => !Object.hasOwn(document.components.schemas, name))).toEqual([])
    expect(names.size).toBeGreaterThan(20)
  })

  it('describes nothing that is not answered, but the page that is not there yet', async () => {
    const { origin, adminKey, stop } = await startService()
    onTestFinished(stop)
    const unanswered: string[] = []
    for (const { id, method, path } of Object.values<Operation>(OPERATIONS)) {
      const url = origin + path.replaceAll(/\{\w+\}/g, '1')
      const response = await fetch(url, { method, headers: { Authorization: `Bearer ${adminKey}` } })
      const text = response.headers.get('content-type')?.includes('problem') ? await response.text() : ''
      if (text === '') await response.body?.cancel()
      if (text.includes('lists everything there is')) unanswered.push(id)
    }
    expect(unanswered).toEqual([])
  })
})
