import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ROUTES } from '../pages/routes.ts'
import type { WatchedPage } from './browser.test.support.ts'
import { accessibilityProblems, openPage, startBrowser } from './browser.test.support.ts'
import type { RunningService } from './running-service.test.support.ts'
import { startService } from './running-service.test.support.ts'

let service: RunningService
let browser: Browser

beforeAll(async () => {
  ;[service, browser] = await Promise.all([startService(), startBrowser()])
  await service.admin('PUT', '/admin/ratelimits', {
    resource: '/api/v1/data',
    rules: [{ dimension: 'user', limit: 3, window: '1h' }],
  })
  const denied = { user: 'user-1', ip: '192.0.2.1', resource: '/api/v1/data' }
  for (let calls = 0; calls < 5; calls += 1) await service.check(denied)
})

afterAll(async () => {
  await browser?.close()
  await service?.stop()
})

async function signIn(page: Page, apiKey: string): Promise<void> {
  await page.getByLabel('API key').fill(apiKey)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('navigation', { name: 'Pages' }).waitFor({ state: 'attached' })
}

/** The pages of the navigation. */
const PATHS = ROUTES.filter(({ navigation }) => navigation !== undefined).map(({ path }) => path)

describe('signing in', () => {
  it('takes an API key and keeps it nowhere that scripts or the address show', async () => {
    const { page, problems } = await openPage(browser, service.url)
    await signIn(page, service.apiKey)
    const kept = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, history.state]),
    )
    expect(kept).not.toContain(service.apiKey.slice(-20))
    expect((await page.context().cookies()).map(({ httpOnly, sameSite }) => [httpOnly, sameSite])).toEqual([
      [true, 'Strict'],
    ])
    await page.reload()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('API key').waitFor()
    expect(await page.context().cookies()).toEqual([])
    expect(problems).toEqual([])
    await page.context().close()
  })

  it('says what is wrong with a key that is not valid', async () => {
    const { page } = await openPage(browser, service.url)
    await page.getByLabel('API key').fill('slk_nobody_knows')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').getByText('SLUICE_HTTP_UNAUTHORIZED').waitFor()
    expect(await page.getByLabel('API key').inputValue()).toBe('')
    expect(await accessibilityProblems(page)).toEqual([])
    await page.context().close()
  })

  it('ends when its key is revoked', async () => {
    const { apiKey, token } = await service.admin<{ apiKey: { id: string }; token: string }>(
      'POST',
      '/admin/api-keys',
      {
        name: 'short',
        role: 'viewer',
      },
    )
    const { page } = await openPage(browser, service.url)
    await signIn(page, token)
    await service.admin('DELETE', `/admin/api-keys/${apiKey.id}`)
    await page.getByLabel('API key').waitFor()
    await page.context().close()
  })
})

describe('every page', () => {
  let signedIn: WatchedPage

  beforeAll(async () => {
    signedIn = await openPage(browser, service.url)
    await signIn(signedIn.page, service.apiKey)
  })

  it.each(PATHS)('%s is accessible in light and dark, keeps the policy, and fits a phone', async (path) => {
    const { page, problems } = signedIn
    problems.length = 0
    await page.emulateMedia({ colorScheme: 'light' })
    await page.setViewportSize({ width: 1440, height: 900 })
    await page.goto(service.url + path)
    await page.getByRole('main').getByRole('heading', { level: 1 }).waitFor()
    expect(await accessibilityProblems(page)).toEqual([])
    await page.emulateMedia({ colorScheme: 'dark' })
    expect(await accessibilityProblems(page, ['color-contrast'])).toEqual([])
    await page.setViewportSize({ width: 390, height: 844 })
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390)
    expect(problems).toEqual([])
  })
})
