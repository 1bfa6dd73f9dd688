import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe } from 'vitest'
import { pagesSuite } from './pages.suite.test.support.ts'
import type { RealService } from './real-service.test.support.ts'
import { MISSING, startBrowser, startRealService } from './real-service.test.support.ts'
import { ruleEditorSuite } from './rule-editor.suite.test.support.ts'

// One service and one browser for all: to build the page and to start both takes longer than most of the tests.
describe.skipIf(MISSING !== undefined)(`the dashboard${MISSING === undefined ? '' : ` (${MISSING})`}`, () => {
  let service: RealService
  let browser: Browser

  beforeAll(async () => {
    service = await startRealService()
    browser = await startBrowser()
  })

  afterAll(async () => {
    await browser?.close()
    await service?.close()
  })

  const running = (): { service: RealService; browser: Browser } => ({ service, browser })

  pagesSuite(running)
  ruleEditorSuite(running)
})
