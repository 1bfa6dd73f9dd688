// `npm run api-docs`: writes the generated reference pages, after operations, settings or metrics have changed, and
// llms.txt, after pages or their first sentences have.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { apiReferenceFile, renderApiReference } from './api-reference.ts'
import { gatewayReferenceFile, renderGatewayReference } from './gateway-reference.ts'
import { llmsTxtFile, renderLlmsTxt } from './llms-txt.ts'
import {
  metricsReferenceFile,
  renderMetricsReference,
  renderSettingsReference,
  settingsReferenceFile,
} from './service-reference.ts'
import { runTool } from './tool-error.ts'
import { repositoryRoot } from './workspace.ts'

const PAGES = [
  [apiReferenceFile, renderApiReference],
  [settingsReferenceFile, renderSettingsReference],
  [metricsReferenceFile, renderMetricsReference],
  [gatewayReferenceFile, renderGatewayReference],
  [llmsTxtFile, () => renderLlmsTxt(repositoryRoot)],
] as const

await runTool(async () => {
  for (const [file, render] of PAGES) {
    writeFileSync(join(repositoryRoot, file), await render())
    console.log(`${file} written`)
  }
})
