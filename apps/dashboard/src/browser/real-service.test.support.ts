import type { Browser, BrowserContextOptions } from 'playwright-core'
import type { WatchedPage } from './browser.test.support.ts'
import { openPage } from './browser.test.support.ts'
import type { RunningService } from './running-service.test.support.ts'

/** The service and the browser of a test file, once they run. */
export type Running = () => { readonly service: RunningService; readonly browser: Browser }

/** Opens a page of the dashboard in a browser of its own, signed in with a key. Default: that of the admin. */
export async function openSignedIn(
  { service, browser }: ReturnType<Running>,
  path: string,
  { key = service.apiKey, ...options }: BrowserContextOptions & { readonly key?: string } = {},
): Promise<WatchedPage> {
  const opened = await openPage(browser, service.url + path, {
    ...options,
    prepare: async (context) => {
      context.setDefaultTimeout(15_000)
      const answer = await context.request.post(`${service.url}/auth/session`, { data: { apiKey: key } })
      if (!answer.ok()) throw new Error(`The sign-in answered ${answer.status()}: ${await answer.text()}`)
    },
  })
  return opened
}
