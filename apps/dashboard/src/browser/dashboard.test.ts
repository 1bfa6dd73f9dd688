import type { Browser } from 'playwright-core'
import { afterAll, beforeAll } from 'vitest'
import { accessSuite } from './access.suite.test.support.ts'
import { alertsSuite } from './alerts.suite.test.support.ts'
import { startBrowser } from './browser.test.support.ts'
import { entriesSuite } from './entries.suite.test.support.ts'
import { pagesSuite } from './pages.suite.test.support.ts'
import { ruleEditorSuite } from './rule-editor.suite.test.support.ts'
import type { RunningService } from './running-service.test.support.ts'
import { startService } from './running-service.test.support.ts'
import type { WebhookReceiver } from './webhook-receiver.test.support.ts'
import { startWebhookReceiver } from './webhook-receiver.test.support.ts'

// One service and one browser for all: to start both takes longer than most of the tests.
let receiver: WebhookReceiver
let service: RunningService
let browser: Browser

beforeAll(async () => {
  receiver = await startWebhookReceiver()
  ;[service, browser] = await Promise.all([startService({ alertWebhook: receiver.url }), startBrowser()])
})

afterAll(async () => {
  await browser?.close()
  await service?.stop()
  await receiver?.close()
})

const running = (): { service: RunningService; browser: Browser } => ({ service, browser })

pagesSuite(running)
accessSuite(running)
entriesSuite(running)
alertsSuite(running, () => receiver)
ruleEditorSuite(running)
