import type { Browser } from 'playwright-core'
import { afterAll, beforeAll } from 'vitest'
import { accessSuite } from './access.suite.test.support.ts'
import { startBrowser } from './browser.test.support.ts'
import { pagesSuite } from './pages.suite.test.support.ts'
import { ruleEditorSuite } from './rule-editor.suite.test.support.ts'
import type { RunningService } from './running-service.test.support.ts'
import { startService } from './running-service.test.support.ts'

// One service and one browser for all: to start both takes longer than most of the tests.
let service: RunningService
let browser: Browser

beforeAll(async () => {
  ;[service, browser] = await Promise.all([startService(), startBrowser()])
})

afterAll(async () => {
  await browser?.close()
  await service?.stop()
})

const running = (): { service: RunningService; browser: Browser } => ({ service, browser })

pagesSuite(running)
accessSuite(running)
ruleEditorSuite(running)
