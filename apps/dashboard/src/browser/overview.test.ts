import { rmSync } from 'node:fs'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { accessibilityProblems, buildDashboard, openPage, startBrowser } from './browser.test.support.ts'
import type { FakeFigures, FakeService } from './fake-service.test.support.ts'
import { startFakeService } from './fake-service.test.support.ts'

/** A machine that runs other tests at the same time is slow. */
const WAIT = { timeout: 15_000 }

let dist: string
let browser: Browser
const fakes: FakeService[] = []

beforeAll(async () => {
  dist = buildDashboard()
  browser = await startBrowser()
})

afterAll(async () => {
  await browser?.close()
  await Promise.all(fakes.map((fake) => fake.close()))
  if (dist !== undefined) rmSync(dist, { recursive: true })
})

async function fakeService(figures: Partial<FakeFigures> = {}): Promise<FakeService> {
  const fake = await startFakeService({ dist, resources: 12, everyMs: 200, ...figures })
  fakes.push(fake)
  return fake
}

describe('the overview', () => {
  it.each(['light', 'dark'] as const)('is accessible and keeps the policy in %s', async (colorScheme) => {
    const fake = await fakeService()
    const { page, problems } = await openPage(browser, fake.url, { colorScheme })
    await page.getByText('live', { exact: true }).waitFor()
    await page.getByText('version 13 would also deny').first().waitFor()
    expect(await accessibilityProblems(page)).toEqual([])
    expect(problems).toEqual([])
    await page.context().close()
  })

  it('has no wider content than a phone', async () => {
    const fake = await fakeService()
    const { page } = await openPage(browser, fake.url, { viewport: { width: 390, height: 844 } })
    await page.getByText('live', { exact: true }).waitFor()
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390)
    await page.context().close()
  })

  it('shares the crosshair, stands still under the pointer, and opens the decisions behind a point', async () => {
    const fake = await fakeService()
    const { page } = await openPage(browser, fake.url)
    await page.getByText('live', { exact: true }).waitFor()
    const plot = page.getByRole('figure', { name: 'Requests and denials' }).locator('.u-over')
    await plot.hover({ position: { x: 200, y: 60 } })
    await page.getByText('paused while you point').waitFor()
    const others = page.getByRole('figure', { name: 'Store latency' }).locator('.u-cursor-x')
    expect(await others.evaluate((line) => line.style.transform)).toMatch(/translate\([1-9]/)
    await plot.click({ position: { x: 200, y: 60 } })
    const { pathname, searchParams } = new URL(page.url())
    expect(pathname).toBe('/decisions')
    expect(Number(searchParams.get('to')) - Number(searchParams.get('from'))).toBe(10_000)
    await page.context().close()
  })

  it('opens the denied decisions of the resource whose line is clicked, on the node that is shown', async () => {
    // The one resource denies nothing: its line is at the bottom.
    const fake = await fakeService({ resources: 1 })
    const { page } = await openPage(browser, new URL('?node=node-1', fake.url).href)
    const plot = page.getByRole('figure', { name: 'Denial rate by resource' }).locator('.u-over')
    // The chart is made again when it knows its lines.
    await page.getByRole('figure', { name: 'Denial rate by resource' }).getByTitle('/api/v1/resource-0').waitFor()
    const { height } = (await plot.boundingBox())!
    const openedAt = async (y: number): Promise<Record<string, string>> => {
      await page.getByText('live', { exact: true }).waitFor()
      await plot.click({ position: { x: 200, y } })
      const { pathname, searchParams } = new URL(page.url())
      await page.goBack()
      return { pathname, ...Object.fromEntries([...searchParams].filter(([name]) => name !== 'from' && name !== 'to')) }
    }
    const denied = { pathname: '/decisions', outcome: 'denied', node: 'node-1' }
    expect(await openedAt(height - 2)).toEqual({ ...denied, resource: '/api/v1/resource-0' })
    expect(await openedAt(height / 2)).toEqual(denied)
    await page.context().close()
  })

  it('marks a share above the bound of the alert, and says the bound', async () => {
    const fake = await fakeService()
    const { page } = await openPage(browser, fake.url)
    await page.getByText('alert above 30%').waitFor()
    await page.context().close()
  })

  it('switches to one node, ten times a second, and back to all', async () => {
    const fake = await fakeService()
    const { page } = await openPage(browser, fake.url)
    const nodes = page
      .getByRole('term')
      .filter({ hasText: /^Nodes$/ })
      .locator('..')
    await nodes.getByText('2', { exact: true }).waitFor()
    const stream = page.waitForRequest((request) => request.url().includes('/admin/overview/live'))
    await page.getByLabel('Node', { exact: true }).selectOption('limits-2 (US)')
    expect(new URL((await stream).url()).search).toBe('?everyMs=100&node=node-1')
    await nodes.getByText('1', { exact: true }).waitFor()
    await page.reload()
    await nodes.getByText('1', { exact: true }).waitFor()
    await page.getByLabel('Node', { exact: true }).selectOption('All 2 nodes')
    await nodes.getByText('2', { exact: true }).waitFor()
    expect(new URL(page.url()).search).toBe('')
    await page.context().close()
  })

  it('keeps a selected range in the URL, and returns to live', async () => {
    const fake = await fakeService()
    const { page } = await openPage(browser, fake.url)
    await page.getByText('live', { exact: true }).waitFor()
    const box = await page.getByRole('figure', { name: 'Requests and denials' }).locator('.u-over').boundingBox()
    await page.mouse.move(box!.x + 100, box!.y + 50)
    await page.mouse.down()
    await page.mouse.move(box!.x + 300, box!.y + 60, { steps: 4 })
    await page.mouse.up()
    await page.getByText('past', { exact: true }).waitFor()
    const { searchParams } = new URL(page.url())
    expect(Number(searchParams.get('from'))).toBeLessThan(Number(searchParams.get('to')))
    await page.getByRole('button', { name: 'Back to live' }).click()
    await page.getByText('live', { exact: true }).waitFor()
    expect(new URL(page.url()).search).toBe('')
    await page.context().close()
  })

  it('shows each chart as a table, whose rows lead to the decisions', async () => {
    const fake = await fakeService()
    const { page } = await openPage(browser, fake.url)
    const table = page.getByRole('table', { name: 'Requests and denials, as a table' })
    await expect.poll(() => table.getByRole('row').count(), WAIT).toBeGreaterThan(10)
    // Nothing takes the focus that nobody sees.
    expect(await page.locator('.visually-hidden').locator('a, button, [tabindex]').count()).toBe(0)
    await page.getByRole('button', { name: 'Show Requests and denials as a table' }).click()
    const links = table.getByRole('row').nth(1).getByRole('link')
    const hrefs = await links.evaluateAll((found) => found.map((link) => link.getAttribute('href')))
    expect(hrefs[0]).toMatch(/^\/decisions\?from=\d+&to=\d+$/)
    expect(hrefs.slice(1)).toEqual([hrefs[0], `${hrefs[0]}&outcome=denied`, hrefs[0]])
    await page.context().close()
  })
})

describe('the shell', () => {
  it('is used by keyboard alone', async () => {
    const fake = await fakeService()
    const { page } = await openPage(browser, fake.url)
    await page.getByText('live', { exact: true }).waitFor()
    await page.keyboard.press('Tab')
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Skip to content')
    await page.keyboard.press('Enter')
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('main')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('theme dark')
    await page.keyboard.press('Enter')
    await expect.poll(() => page.locator('html').getAttribute('data-theme'), WAIT).toBe('dark')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('user-7')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowUp')
    await page.keyboard.press('Enter')
    await expect.poll(() => new URL(page.url()).search, WAIT).toBe('?user=user-7')
    await page.context().close()
  })

  it('says that the service is unreachable, and continues when it is back', async () => {
    const fake = await fakeService()
    const { page } = await openPage(browser, fake.url)
    await page.getByText('live', { exact: true }).waitFor()
    fake.goAway()
    await page.getByText('The service does not answer.').waitFor()
    const sent = fake.sentUpdates
    fake.comeBack()
    await page.getByText('live', { exact: true }).waitFor()
    await page.getByText('The service does not answer.').waitFor({ state: 'detached' })
    await expect.poll(() => fake.sentUpdates, WAIT).toBeGreaterThan(sent)
    await page.context().close()
  })

  it('works below a path, however deep the page is', async () => {
    const fake = await fakeService({ prefix: '/ops/limits/' })
    const { page, problems } = await openPage(browser, `${fake.url}no/such/page`)
    await page.getByText('There is no page here').waitFor()
    await page.getByRole('button', { name: 'Open the overview' }).click()
    await page.getByText('live', { exact: true }).waitFor()
    expect(new URL(page.url()).pathname).toBe('/ops/limits/')
    expect(problems).toEqual([])
    await page.context().close()
  })
})
