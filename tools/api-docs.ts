// `npm run api-docs`: writes the reference of the HTTP API, after the table of operations has changed.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { apiReferenceFile, renderApiReference } from './api-reference.ts'
import { runTool } from './tool-error.ts'
import { repositoryRoot } from './workspace.ts'

await runTool(async () => {
  writeFileSync(join(repositoryRoot, apiReferenceFile), await renderApiReference())
  console.log(`${apiReferenceFile} written`)
})
