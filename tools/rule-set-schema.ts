// `npm run schema`: writes the JSON Schema of rule set files, after the schema that they are checked by has changed.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { renderSchemaFile, schemaFile } from './schema-file.ts'
import { runTool } from './tool-error.ts'
import { repositoryRoot } from './workspace.ts'

await runTool(async () => {
  writeFileSync(join(repositoryRoot, schemaFile), await renderSchemaFile())
  console.log(`${schemaFile} written`)
})
