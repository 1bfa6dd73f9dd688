import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { renderSchemaFile, schemaFile } from './schema-file.ts'
import { repositoryRoot } from './workspace.ts'

describe('the JSON Schema of rule set files', () => {
  it('is the one that they are checked by; after a change, npm run schema', async () => {
    expect(readFileSync(join(repositoryRoot, schemaFile), 'utf8')).toBe(await renderSchemaFile())
  })
})
