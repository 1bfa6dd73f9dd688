import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { accessibilityProblems, openPage } from './browser.test.support.ts'
import type { Running } from './real-service.test.support.ts'
import { openSignedIn } from './real-service.test.support.ts'
import type { RunningService } from './running-service.test.support.ts'

const RULE_SET = {
  rules: [
    { resource: '/orders', methods: ['POST'], dimension: 'user', limit: 100, window: '1m', burst: 20 },
    { resource: '/login', dimension: 'ip', algorithm: 'sliding-window-log', limit: 5, window: '1m' },
    { resource: '/export', dimension: 'user', limit: 5, window: '1d' },
    { resource: '/partners', dimension: 'apiKey', limit: 2, window: '1d' },
    { resource: '/status', dimension: 'global', limit: 1, window: '1d' },
    { resource: '*', dimension: 'tenant', limit: 5000, window: '1m', shadow: true },
  ],
  tiers: [{ name: 'premium', multiplier: 10 }],
  exemptions: [{ name: 'health', match: { resource: '/health' } }],
  denyList: [{ name: 'scrapers', match: { cidrs: ['198.51.100.0/24'] } }],
}

/** Every page but the overview and the sign-in, and a text that says that it has loaded. */
const PAGES = [
  ['/decisions?outcome=denied', 'denied: limit'],
  ['/playground', 'times the limit'],
  ['/gateway', 'healthy'],
  ['/nodes', 'answers this page'],
  ['/alerts', 'Every message arrived.'],
  ['/api-keys', 'Rotate'],
  ['/sessions', 'this browser'],
  ['/audit', 'version.stage'],
  ['/usage?user=ada', 'Counters of user ada'],
  ['/explain?resource=/orders&method=POST&user=ada', 'Would be allowed'],
  ['/rules?tab=versions', 'Versions of the rule set'],
  ['/rules?tab=overrides', 'They hold in the place of'],
  ['/rules?tab=tiers', 'Members of tiers'],
  ['/rules?tab=exemptions', 'No rule limits calls of /health.'],
  ['/rules?tab=deny-list', 'Denies all calls from'],
  ['/rules?tab=blocks', 'abuse report'],
  ['/rules/edit', 'Each user may call POST /orders'],
  ['/rules/edit?view=yaml', 'rules.yaml'],
] as const

/** Pages that have every component between them. */
const DARK_PAGES: readonly string[] = ['/usage?user=ada', '/rules?tab=versions', '/rules/edit', '/gateway', '/alerts']

/** Pages with data of the real service: accessible, within the policy, on a phone, by role, and what they do. */
export function pagesSuite(running: Running): void {
  describe('pages', () => {
    let service: RunningService
    let browser: Browser

    beforeAll(async () => {
      ;({ service, browser } = running())
      await service.admin('POST', '/admin/versions', { ruleSet: RULE_SET, basedOn: 1, note: 'limits of the shop' })
      await service.admin('POST', '/admin/versions/2/stage', { stage: 'enforce' })
      const stricter = { ...RULE_SET, rules: [{ ...RULE_SET.rules[0], limit: 50 }, ...RULE_SET.rules.slice(1)] }
      await service.admin('POST', '/admin/versions', { ruleSet: stricter, basedOn: 2, note: 'half the orders?' })
      await service.admin('POST', '/admin/versions/3/stage', { stage: 'shadow' })
      const block = { dimension: 'ip', entity: '203.0.113.9', duration: '1h', reason: 'abuse report 4711' }
      await service.admin('PUT', '/admin/blocks', block)
      const terms = { multiplier: 2 }
      await service.admin('PUT', '/admin/overrides', { dimension: 'user', entity: 'ada', resource: '/orders', terms })
      for (let calls = 0; calls < 6; calls++) await service.check({ user: 'mallory', resource: '/export' })
      await service.admin('PUT', '/admin/members', { dimension: 'tenant', entity: 'acme', tier: 'premium' })
    })

    afterAll(async () => {
      await service.admin('POST', '/admin/versions/3/stage', { stage: 'retired' })
    })

    /** Opens pages in turn in one browser, and gives what is wrong with each. */
    async function problemsOf(
      pages: readonly (typeof PAGES)[number][],
      { colorScheme, rules }: { readonly colorScheme: 'light' | 'dark'; readonly rules?: readonly string[] },
    ): Promise<Record<string, readonly string[]>> {
      // A small screen: tables have the least room here before they become lists.
      const viewport = { width: 1024, height: 768 }
      const { page, problems } = await openSignedIn(running(), pages[0]![0], { colorScheme, viewport })
      const found: Record<string, readonly string[]> = {}
      for (const [path, text] of pages) {
        if (!page.url().endsWith(path)) await page.goto(new URL(path, service.url).href)
        await page.getByText(text).first().waitFor()
        const here = [
          ...(await accessibilityProblems(page, rules)),
          ...(await tooWideTables(page)),
          ...problems.splice(0),
        ]
        if (here.length > 0) found[path] = here
      }
      await page.context().close()
      return found
    }

    /** Tables that are wider than their place, although their secondary columns gave way. */
    function tooWideTables(page: Page): Promise<string[]> {
      return page.evaluate(() =>
        [...document.querySelectorAll('section:has(> table):not(.visually-hidden section)')]
          .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
          .map((place) => `${place.ariaLabel} is ${place.scrollWidth - place.clientWidth} pixels too wide`),
      )
    }

    it.each([0, 6, 12])('from number %i on are accessible and keep the policy', async (from) => {
      expect(await problemsOf(PAGES.slice(from, from + 6), { colorScheme: 'light' })).toEqual({})
    })

    // Only colours differ between light and dark.
    it('have contrast in the dark', async () => {
      const pages = PAGES.filter(([path]) => DARK_PAGES.includes(path))
      expect(await problemsOf(pages, { colorScheme: 'dark', rules: ['color-contrast'] })).toEqual({})
    })

    it('fit on a phone', async () => {
      const viewport = { width: 390, height: 844 }
      const { page, problems } = await openSignedIn(running(), '/rules', { viewport })
      const widths: Record<string, number> = {}
      for (const [path, text] of PAGES) {
        await page.goto(new URL(path, service.url).href)
        await page.getByText(text).first().waitFor()
        widths[path] = await page.evaluate(() => document.documentElement.scrollWidth)
      }
      expect(widths).toEqual(Object.fromEntries(PAGES.map(([path]) => [path, 390])))
      expect(problems).toEqual([])
      await page.context().close()
    })

    it('follow decisions live, filter them, and offer explain and override on a denied row', async () => {
      const { page, problems } = await openSignedIn(running(), '/decisions?outcome=denied')
      await page.getByText('live', { exact: true }).waitFor()
      for (let calls = 0; calls < 6; calls++) await service.check({ user: 'trent', resource: '/export' })
      const row = page.getByRole('row', { name: /user trent/ }).first()
      await row.getByText('denied: limit').waitFor()
      await page.getByText(/held while you look/).waitFor({ state: 'detached' })
      await row.getByRole('button', { name: 'Explain' }).click()
      const dialog = page.getByRole('dialog', { name: 'Why this decision' })
      await dialog.getByText('Would be denied').waitFor()
      expect(await accessibilityProblems(page)).toEqual([])
      await dialog.getByRole('button', { name: 'Close' }).click()
      await row.getByRole('button', { name: 'Override' }).click()
      await page.getByLabel('Multiplier').fill('2')
      await page.getByRole('button', { name: 'Set override' }).click()
      await page.getByText('holds on all nodes within a second').waitFor()
      expect(await service.check({ user: 'trent', resource: '/export' })).toBe(200)
      await row.getByRole('link', { name: 'user trent' }).click()
      await page.waitForURL(/caller=trent/)
      expect(problems).toEqual([])
      await page.context().close()
    })

    it('offer an override on a denied row of an API key without showing the key', async () => {
      const apiKey = 'partner-key-of-7-secrets'
      const partner = { apiKey, resource: '/partners' }
      for (const expected of [200, 200, 429]) expect(await service.check(partner)).toBe(expected)
      for (const expected of [200, 429]) expect(await service.check({ resource: '/status' })).toBe(expected)
      const { page, problems } = await openSignedIn(running(), '/decisions?outcome=denied')
      const row = page.getByRole('row', { name: /\/partners@apiKey/ }).first()
      await row.getByRole('button', { name: 'Override' }).click()
      await page.getByRole('dialog', { name: /^Override for API key digest:[0-9a-f]{16}$/ }).waitFor()
      await page.getByLabel('Multiplier').fill('2')
      await page.getByRole('button', { name: 'Set override' }).click()
      await page.getByText('holds on all nodes within a second').waitFor()
      for (const expected of [200, 200, 429]) expect(await service.check(partner)).toBe(expected)
      expect(await service.check({ apiKey: 'another-key', resource: '/partners' })).toBe(200)
      expect(JSON.stringify(await service.admin('GET', '/admin/overrides'))).not.toContain(apiKey)
      await page
        .getByRole('row', { name: /\/status@global/ })
        .getByRole('button', { name: 'Edit rule' })
        .click()
      await page.getByText('All callers together').first().waitFor()
      expect(problems).toEqual([])
      await page.context().close()
    })

    it('show the counters of an API key that was typed, and never put it into the address', async () => {
      const apiKey = 'key-of-a-partner'
      expect(await service.check({ apiKey, resource: '/partners' })).toBe(200)
      const { page, problems } = await openSignedIn(running(), `/usage?apiKey=${apiKey}`)
      await page.getByText('Whose usage?').waitFor()
      await page.goto(new URL('/nodes', service.url).href)
      await page.getByRole('heading', { name: 'Nodes' }).waitFor()
      await page.keyboard.press('Control+k')
      await page.keyboard.type(apiKey)
      await page.getByRole('option', { name: 'Usage of API key' }).click()
      await page.getByRole('heading', { name: `Counters of API key ${apiKey}` }).waitFor()
      await page.getByRole('row', { name: /^\/partners@apiKey/ }).waitFor()
      const kept = await page.evaluate(() =>
        JSON.stringify([location.href, history.state, { ...localStorage }, { ...sessionStorage }]),
      )
      expect(kept).not.toContain(apiKey)
      await page.goto(service.url)
      await page.getByRole('button', { name: 'Keys', exact: true }).click()
      const rows = page.getByRole('table', { name: 'Most denied callers: Keys' }).getByRole('row')
      await rows.getByRole('link', { name: 'decisions' }).first().waitFor()
      // A digest has no counters: its only link is that to the decisions.
      expect(await rows.nth(1).getByRole('link').count()).toBe(1)
      expect(problems).toEqual([])
      await page.context().close()
    })

    it('hold the list of decisions while the keyboard is in it, and filter it by resource', async () => {
      const { page } = await openSignedIn(running(), '/decisions?outcome=denied')
      await page.getByRole('button', { name: 'Explain' }).first().waitFor()
      await page.getByRole('button', { name: 'Filter' }).focus()
      await page.keyboard.press('Tab')
      await page.getByText(/held while you look/).waitFor()
      await page.keyboard.press('Shift+Tab')
      await page.getByText('live', { exact: true }).waitFor()
      await page.getByLabel('Resource').fill('/partners')
      await page.getByRole('button', { name: 'Filter' }).click()
      await page.getByRole('list', { name: 'Filters' }).getByText('/partners').waitFor()
      const rows = page.getByRole('table').getByRole('row').filter({ hasText: 'denied' })
      await expect
        .poll(async () => new Set(await rows.locator('td:nth-child(3)').allInnerTexts()))
        .toEqual(new Set(['/partners']))
      await page.context().close()
    })

    it('explain a pasted curl command, and leave its secrets out', async () => {
      const { page } = await openSignedIn(running(), '/explain')
      const curl = "curl https://shop/login -H 'X-Forwarded-For: 198.51.100.7' -H 'Authorization: Bearer secret-1'"
      await page.getByLabel('Paste a request').fill(curl)
      await page.getByText('The Authorization header was left out').waitFor()
      await page.getByRole('button', { name: 'Explain', exact: true }).click()
      await page.getByText('The deny list denies it whatever the rules say: entry scrapers.').waitFor()
      expect(page.url()).toContain('resource=%2Flogin')
      expect(page.url()).not.toContain('secret-1')
      await page.context().close()
    })

    it('show the double burst of a fixed window, without signing in, and a scenario as a link', async () => {
      const { page, problems } = await openPage(browser, new URL('/playground', service.url).href)
      await page.getByText('at most 40 in 10s: 2.0 times the limit').first().waitFor()
      await page.getByLabel('Calls', { exact: true }).fill('5')
      await page.getByLabel('Calls on each side').fill('5')
      await page.getByText('at most 10 in 10s: 2.0 times the limit').first().waitFor()
      await page.getByLabel('Leaky bucket (queue)').check()
      await page.reload()
      const fixed = page.getByRole('img', { name: /^Fixed window/ })
      expect(await fixed.getAttribute('aria-label')).toBe(
        'Fixed window: 20 calls admitted, 0 denied, at most 10 within 10s, where the limit is 5.',
      )
      await page.getByRole('img', { name: /^Leaky bucket \(queue\)/ }).waitFor()
      const traffic = page.getByRole('slider', { name: /^Traffic/ })
      await traffic.focus()
      await page.keyboard.press('PageUp')
      await page.waitForURL(/shape=drawn/)
      expect(problems).toEqual([])
      await page.context().close()
    })

    it('offer a viewer nothing that it may not do', async () => {
      const issued = await service.admin('POST', '/admin/api-keys', { name: 'reader', role: 'viewer' })
      const { token } = issued as { token: string }
      const { page, problems } = await openSignedIn(running(), '/rules', { key: token })
      await page.getByText('Your API key has the role viewer; changes here need the role editor.').waitFor()
      await page.getByText('6 rules').waitFor()
      expect(await page.getByRole('button', { name: 'New rule' }).count()).toBe(0)
      expect(await page.getByRole('link', { name: 'Edit', exact: true }).count()).toBe(0)
      await page.goto(new URL('/usage?user=ada', service.url).href)
      await page.getByRole('heading', { name: 'Counters of user ada' }).waitFor()
      expect(await page.getByRole('button', { name: 'Override' }).count()).toBe(0)
      await page.goto(new URL('/api-keys', service.url).href)
      await page.getByText('changes here need the role admin').waitFor()
      expect(problems).toEqual([])
      await page.context().close()
    })

    it('override, refund, reset and block from the row of a caller, each in the audit log', async () => {
      const call = { user: 'eve', resource: '/export' }
      for (let calls = 0; calls < 5; calls++) expect(await service.check(call)).toBe(200)
      expect(await service.check(call)).toBe(429)
      const { page } = await openSignedIn(running(), '/usage?user=eve')
      const row = page.getByRole('row', { name: /^\/export@user/ })
      await row.getByRole('button', { name: 'Refund or reset' }).click()
      await page.getByRole('button', { name: 'Refund some units' }).click()
      await page.getByLabel('Units').fill('2')
      await page.getByRole('button', { name: 'Refund', exact: true }).click()
      await page.getByText('One counter got units back.').waitFor()
      expect([await service.check(call), await service.check(call), await service.check(call)]).toEqual([200, 200, 429])
      await row.getByRole('button', { name: 'Refund or reset' }).click()
      await page.getByLabel('Note').fill('import of last night')
      await page.getByRole('button', { name: 'Reset counters' }).click()
      await page.getByText('One counter starts anew.').waitFor()
      expect(await service.check(call)).toBe(200)
      await row.getByRole('button', { name: 'Override' }).click()
      await page.getByLabel('Multiplier').fill('3')
      await page.getByRole('button', { name: 'Set override' }).click()
      await page.getByText('3 times the limit for rules of').waitFor()
      await row.getByRole('button', { name: 'Block' }).click()
      await page.getByLabel('Reason').fill('tried again')
      await page.getByRole('dialog').getByRole('button', { name: 'Block' }).click()
      await page.getByText('(tried again)').waitFor()
      expect(await service.check(call)).toBe(429)
      await page.goto(new URL('/audit', service.url).href)
      for (const action of ['block.put', 'override.put', 'counters.reset', 'counters.refund'])
        await page.getByText(action).first().waitFor()
      await page.getByText('import of last night').waitFor()
      await page.context().close()
    })
  })
}
