import type { IssuedApiKey } from '@sluice/contract'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { accessibilityProblems, openPage, startBrowser } from './browser.test.support.ts'
import type { RunningService } from './running-service.test.support.ts'
import { startService } from './running-service.test.support.ts'

const DENIED = { user: 'user-1', ip: '192.0.2.1', resource: '/api/v1/data' }
/** A machine that runs other tests at the same time is slow. */
const WAIT = { timeout: 15_000 }

let service: RunningService
let browser: Browser

beforeAll(async () => {
  ;[service, browser] = await Promise.all([startService(), startBrowser()])
  await service.admin('PUT', '/admin/ratelimits', {
    resource: '/api/v1/data',
    rules: [{ dimension: 'user', limit: 3, window: '1h' }],
  })
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
    await page.getByLabel('API key').fill('slk_unknown_key')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').getByText('SLUICE_HTTP_UNAUTHORIZED').waitFor()
    expect(await page.getByLabel('API key').inputValue()).toBe('')
    expect(await accessibilityProblems(page)).toEqual([])
    await page.context().close()
  })

  it('ends when its key is revoked', async () => {
    const request = { name: 'short', role: 'viewer' }
    const { apiKey, token } = await service.admin<IssuedApiKey>('POST', '/admin/api-keys', request)
    const { page } = await openPage(browser, service.url)
    await signIn(page, token)
    await service.admin('DELETE', `/admin/api-keys/${apiKey.id}`)
    await page.getByLabel('API key').waitFor()
    await page.context().close()
  })
})

it('npm start suggests the demo', () => {
  expect(service.complaints()).toContain('run `npm run demo`')
})

describe('the overview of a real service', () => {
  it('shows traffic live, and who is denied', async () => {
    const { page, problems } = await openPage(browser, service.url)
    await signIn(page, service.apiKey)
    await page.getByText('live', { exact: true }).waitFor()
    for (let calls = 0; calls < 5; calls += 1) await service.check(DENIED)
    await page.getByRole('link', { name: 'user-1', exact: true }).waitFor()
    await expect
      .poll(() => page.getByRole('table', { name: 'Requests and denials, as a table' }).getByRole('row').count(), WAIT)
      .toBeGreaterThan(1)
    expect(await accessibilityProblems(page)).toEqual([])
    expect(problems).toEqual([])
    await page.context().close()
  })
})
