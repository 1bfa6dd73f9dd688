import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { apiReferenceFile, renderApiReference } from './api-reference.ts'
import { repositoryRoot } from './workspace.ts'

describe('the reference of the HTTP API', () => {
  it('is made of the table of operations; after a change, npm run api-docs', async () => {
    expect(readFileSync(join(repositoryRoot, apiReferenceFile), 'utf8')).toBe(await renderApiReference())
  })

  it('has every operation of the table, once', async () => {
    const source = join(repositoryRoot, 'packages/contract/src/index.ts')
    const { OPERATIONS } = (await import(source)) as {
      readonly OPERATIONS: Readonly<Record<string, { readonly method: string; readonly path: string }>>
    }
    const text = await renderApiReference()
    const headings = [...text.matchAll(/^### `(.+)`$/gm)].map(([, heading]) => heading)
    const operations = Object.values(OPERATIONS).map(({ method, path }) => `${method} ${path}`)
    expect(headings.toSorted()).toEqual(operations.toSorted())
  })
})
